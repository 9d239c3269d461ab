"""The partitions of the keys that one routing table has seen, where nothing is compiled.

In Python a key's hash costs a third of what `produce` adds to the bare client, and a look-up a sixth of the hash. Keys
that do not repeat would pay for both, so a table whose keys seldom repeat soon stops looking.
"""

import threading
from collections.abc import Callable
from typing import Final

from producer.decisions.key_hash import Hash
from producer.decisions.rendezvous_slots import Table

KNOWN: Final = 2_048
"""Keys of one table."""
LONGEST: Final = 64
"""Length of the longest key that is kept, in bytes. So the keys of a topic take at most 0.4 MB."""
WORTH: Final = 8
"""Records for each new key from which looking pays: a new key costs as much as four repeated ones save."""


class KnownKeys:
    """Keys and their partitions, of one table; never of two, as it is replaced together with its table.

    Attributes:
        get: returns the partition of a known key, else the second argument.
        pays: whether looking pays; False forever after too many keys that did not repeat.
    """

    __slots__ = ("_changing", "_hash", "_partitions", "_records", "_start", "_table", "get", "pays")

    def __init__(self, hash_of: Hash, table: Table, records: Callable[[], int]) -> None:
        """Begin without keys.

        Args:
            hash_of: maps a key to a slot of the table; equal keys to equal slots.
            table: partition per slot, not empty.
            records: counts the topic's keyed records so far.
        """
        self._hash = hash_of
        self._table = table
        self._records = records
        self._start = records()
        self._partitions: dict[bytes, int] = {}
        self._changing = threading.RLock()  # a signal handler may call while this thread holds it
        self.get = self._partitions.get
        self.pays = True

    def __len__(self) -> int:
        return len(self._partitions)

    def learn(self, key: bytes) -> int:
        """Return the partition of a key that is not known, and keep it if the key is short."""
        chosen = self._table[self._hash(key, len(self._table))]
        if len(key) <= LONGEST:
            with self._changing:  # or two threads would see that the keys are too many, and the second no records since
                if len(self._partitions) >= KNOWN:
                    self._forget()
                if self.pays:
                    self._partitions[key] = chosen
        return chosen

    def _forget(self) -> None:
        """Begin again, without keys; stay without keys if they seldom repeated."""
        now = self._records()
        self.pays = now - self._start >= WORTH * KNOWN
        self._start = now
        self._partitions.clear()  # in place, as other threads look here
