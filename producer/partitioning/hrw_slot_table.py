"""The table of `local-hrw`: stored, or computed at each look-up where the compiled module can do that.

Both give the same partitions. A stored table of 10,000 partitions takes 2 MB and 0.2 s to build, and a key that was not
used for a while misses the caches.
"""

from functools import lru_cache
from typing import Final

from producer.decisions.rendezvous_slots import Table, hrw_table

try:
    from producer.partitioning import produce_compiled
except ImportError:  # built without a C compiler
    produce_compiled = None  # type: ignore[assignment]

_STORED_UP_TO: Final = 2_048
"""Partitions whose stored table, of 256 kB, is as fast as draws."""
_DENSE: Final = 16
"""Partitions per member up to which draws find a member soon; rarer members cost more draws than a stored table."""


def slot_table(partitions: int, members: tuple[int, ...]) -> Table:
    """Return the partition of each slot among some partitions of a topic; arguments as `hrw_table`."""
    if produce_compiled is None or partitions <= _STORED_UP_TO or len(members) * _DENSE < partitions:
        return hrw_table(partitions, members)
    return _drawn(partitions, members)


@lru_cache(maxsize=64)
def _drawn(partitions: int, members: tuple[int, ...]) -> Table:
    return produce_compiled.DrawnTable(partitions, members)
