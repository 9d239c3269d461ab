"""Removes old snapshots from a table's metadata, which every commit reads and writes whole."""

import logging
import math
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from spark_sink.errors import plain
from spark_sink.lake.iceberg.clock_order import behind_s

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_log = logging.getLogger("azimuth.sink")
_ALLOWED = "gc.enabled"
_AGE = "history.expire.max-snapshot-age-ms"
_KEEP = "history.expire.min-snapshots-to-keep"


def expire(table: "Table", keep: int, every: int) -> bool:
    """Remove the older half of the snapshots if there are more than `every`; return whether that was done.

    The newest half stays, and what the table asks for: `history.expire.min-snapshots-to-keep`,
    `history.expire.max-snapshot-age-ms` and the retention of its branch main, or all of them with `gc.enabled=false`.
    Snapshots with a branch or a tag stay. One commit removes the others, and asserts the snapshot that was read. Data
    files are never deleted; the manifest lists of expired snapshots are deleted afterwards.

    Args:
        table: the table as it was read.
        keep: the snapshot that stored the positions. It stays with all later ones: without one in between, the current
            snapshot would not descend from it, which looks like a rollback.
        every: the largest number of snapshots that stay without an expiry, from 1.
    """
    from pyiceberg.table.update import (
        AssertRefSnapshotId,
        AssertTableUUID,
        RemoveSnapshotsUpdate,
    )

    metadata = table.metadata
    if behind_s(metadata) or metadata.properties.get(_ALLOWED, "true").lower() == "false":
        return False
    half = (every + 1) // 2
    try:
        least, age_ms = _retention(metadata)
    except ValueError as error:
        _warn_once(str(metadata.table_uuid), ".".join(table.name()), str(error))
        return False
    kept = max(half, least)
    if len(metadata.snapshots) <= kept + every - half:
        return False
    pinned = {ref.snapshot_id for ref in metadata.refs.values()}
    oldest = sorted(metadata.snapshots, key=lambda one: one.sequence_number or 0)[:-kept]
    since = next((one.sequence_number or 0 for one in oldest if one.snapshot_id == keep), math.inf)
    before_ms = time.time() * 1000 - age_ms
    old = (one for one in oldest if (one.sequence_number or 0) < since and one.timestamp_ms <= before_ms)
    gone = [one for one in old if one.snapshot_id not in pinned]
    if not gone:
        return False
    update = RemoveSnapshotsUpdate(snapshot_ids=[one.snapshot_id for one in gone])  # type: ignore[call-arg]  # an alias
    assertions = (
        AssertRefSnapshotId(ref="main", snapshot_id=metadata.current_snapshot_id),  # type: ignore[call-arg]  # an alias
        AssertTableUUID(uuid=metadata.table_uuid),
    )
    try:
        table._do_commit((update,), assertions)  # noqa: SLF001 -- once: another writer may have expired them, too
    except Exception as error:  # noqa: BLE001 -- the rows are committed, and the next call tries again
        _log.debug("%s: snapshots were not expired: %s", ".".join(table.name()), plain(error))
        return False
    for one in gone:
        _delete(table, one.manifest_list)
    return True


def _retention(metadata: "TableMetadata") -> tuple[int, int]:
    """Return the number of snapshots and their age in ms that the table keeps at least.

    Raises:
        ValueError: a property is not a whole number.
    """
    properties, main = metadata.properties, metadata.refs.get("main")
    least, age_ms = int(properties.get(_KEEP, "1")), int(properties.get(_AGE, "0"))
    if main is not None:
        least, age_ms = max(least, main.min_snapshots_to_keep or 0), max(age_ms, main.max_snapshot_age_ms or 0)
    return least, age_ms


@lru_cache(maxsize=256)
def _warn_once(_table_uuid: str, name: str, said: str) -> None:
    """Log it at the first of a table's commits, each of which would."""
    _log.warning("%s: snapshots do not expire: a property is not a number: %s", name, said)


def _delete(table: "Table", path: str) -> None:
    try:
        table.io.delete(path)
    except Exception as error:  # noqa: BLE001 -- a file that stays costs its size only
        _log.debug("%s was not deleted: %s", path, plain(error))
