"""Detects a table that was rolled back or replaced: its properties stay, so its positions are ahead of its rows."""

from typing import TYPE_CHECKING

from spark_sink.errors import TableError
from spark_sink.lake.iceberg.stored_state import PROPERTY, State

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

NOTE = "kafka-azimuth"  # in the summary of each snapshot of ours


def refuse_recreated(name: str, before: "Table", now: "Table") -> None:
    """Refuse another table of the same name: its positions are none, so a batch would look like a first one.

    Raises:
        TableError: it is another table.
    """
    if before.metadata.table_uuid != now.metadata.table_uuid:
        raise TableError(
            f"{name}: the table was deleted and recreated while the query ran; nothing was written to the new one. "
            "Start the query again with a new checkpoint"
        )


def refuse_other_past(name: str, metadata: "TableMetadata", state: State) -> None:
    """Refuse a table whose rows do not include those of the commit that stored the positions.

    A foreign expiry may have removed the snapshot of that commit. Then the ancestors that are left must all be newer.
    A rollback, a later append, and the expiry of every older snapshot, all while no agent runs, is not detected.

    Raises:
        TableError: the table was rolled back or replaced, or the property with the positions was removed.
    """
    if not state.snapshot:
        if any(NOTE in one.summary.additional_properties for one in metadata.snapshots if one.summary):
            raise TableError(
                f"{name}: the table has snapshots of this sink, but its property {PROPERTY} was removed, so the "
                "positions are unknown; nothing was written. Restore the property from an older metadata file"
            )
        return
    if not _includes(metadata, state):
        raise TableError(
            f"{name}: the current snapshot does not descend from snapshot {state.snapshot}, which stored the "
            "positions: the table was rolled back or replaced, and rows below the positions are gone. Nothing was "
            f"written. Set the current snapshot to {state.snapshot} or a later one, or write to another table"
        )


def _includes(metadata: "TableMetadata", state: State) -> bool:
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    at = metadata.current_snapshot_id
    older = False
    while at is not None and (one := by_id.get(at)) is not None:
        if at == state.snapshot:
            return True
        older = older or (one.sequence_number or 0) <= state.sequence
        at = one.parent_snapshot_id
    return metadata.current_snapshot_id is not None and not older and state.snapshot not in by_id
