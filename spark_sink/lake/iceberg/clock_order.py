"""The order of times in a table's history, although the clocks of its writers differ. Pure but for the clock.

Iceberg for Java does not load a table whose snapshots, or former metadata files, go back in time by more than a minute.
"""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

_BEHIND_MS = 30_000


def next_time_ms(metadata: "TableMetadata", at_ms: int) -> int:
    """Return the time of a new snapshot: this time, or the first one after the table's last change."""
    last_ms = [one.timestamp_ms for log in (metadata.snapshot_log, metadata.metadata_log) for one in log[-1:]]
    return max(at_ms, metadata.last_updated_ms + 1, *(one + 1 for one in last_ms))


def behind_s(metadata: "TableMetadata") -> float:
    """Return by how many seconds this clock is behind the table's last change; 0 if that is not much.

    A change without a snapshot has the time of this clock, or of the catalog's.
    """
    behind_ms = metadata.last_updated_ms - time.time() * 1000
    return behind_ms / 1000 if behind_ms > _BEHIND_MS else 0.0
