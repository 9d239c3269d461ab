"""Detects a table that was rolled back or replaced: its properties stay, so its positions are ahead of its rows."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from spark_sink.errors import TableError
from spark_sink.lake.iceberg.positions_in_table_properties import PROPERTY, State

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

NOTE = "kafka-azimuth"  # in the summary of each snapshot of ours
COMPACTION, REPAIR = "compaction", "repair"
_WITHOUT_POSITIONS = {COMPACTION, REPAIR}  # the kinds of the only snapshots of ours that store none


def refuse_recreated(name: str, before: "Table", now: "Table") -> None:
    """Refuse another table of the same name: its positions are none, so a batch would look like a first one.

    Raises:
        TableError: it is another table.
    """
    if before.metadata.table_uuid != now.metadata.table_uuid:
        # The tasks of a batch create a missing table, because their files need its field ids.
        empty = " The new one is empty: if the former table was renamed, drop the new one and rename the former back."
        raise TableError(
            f"{name}: the table was deleted and recreated while the query ran; nothing was written to the new one. "
            f"Start the query again with a new checkpoint.{'' if now.metadata.snapshots else empty}"
        )


def refuse_other_past(name: str, metadata: "TableMetadata", state: State) -> None:
    """Refuse a table whose rows do not include those of the commit that stored the positions.

    A foreign expiry may have removed the snapshot of that commit. Then the ancestors that are left must all be newer.
    A rollback, a later append, and the expiry of every older snapshot, all while no agent runs, is not detected.

    Raises:
        TableError: the table was rolled back or replaced, or the property with the positions was removed or is that of
            an earlier commit.
    """
    refuse_lost_positions(name, metadata, state)
    if is_rolled_back(metadata, state):
        raise TableError(
            f"{name}: the current snapshot does not descend from snapshot {state.snapshot}, which stored the "
            "positions: the table was rolled back or replaced, and rows below the positions are gone. Nothing was "
            f"written. Set the current snapshot to {state.snapshot} or a later one, or set the positions back to what "
            "the rows hold with `azimuth rewind`"
        )


def refuse_lost_positions(name: str, metadata: "TableMetadata", state: State) -> None:
    """Refuse a table whose newest positions are not in its property; the table may be rolled back.

    Of a table that was rolled back, all snapshots count: one that is not an ancestor stored the newest positions.

    Raises:
        TableError: the property with the positions was removed, or is that of an earlier commit.
    """
    if not state.snapshot:
        if any(NOTE in one.summary.additional_properties for one in metadata.snapshots if one.summary):
            raise TableError(
                f"{name}: the table has snapshots of this sink, but its property {PROPERTY} was removed, so the "
                "positions are unknown; nothing was written. Restore the property from the newest metadata file with it"
            )
        return
    rows_of = metadata.snapshots if is_rolled_back(metadata, state) else list(_lineage(metadata))
    if (later := _stored_later(rows_of, state)) is not None:
        raise TableError(
            f"{name}: the positions are those of snapshot {state.snapshot}, and snapshot {later} stored later ones: "
            f"the property {PROPERTY} was put back from a metadata file that is too old, and records would come twice. "
            f"Nothing was written. Restore the property from the first metadata file with the snapshot {later}"
        )


def is_rolled_back(metadata: "TableMetadata", state: State) -> bool:
    """Return whether the current snapshot does not descend from the one that stored the positions."""
    return bool(state.snapshot) and not descends(metadata, state.snapshot, state.sequence)


def descends(metadata: "TableMetadata", snapshot: int, sequence: int) -> bool:
    """Return whether the current snapshot is this one, or descends from it.

    Args:
        metadata: of the table.
        snapshot: its id; the snapshot may have expired.
        sequence: its sequence number.
    """
    older = False
    for one in _lineage(metadata):
        if one.snapshot_id == snapshot:
            return True
        older = older or (one.sequence_number or 0) <= sequence
    expired = metadata.snapshot_by_id(snapshot) is None
    return metadata.current_snapshot_id is not None and not older and expired


def _lineage(metadata: "TableMetadata") -> "Iterator[Snapshot]":
    """Yield the current snapshot and its ancestors, newest first, as far as they have not expired."""
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    at = metadata.current_snapshot_id
    while at is not None and (one := by_id.get(at)) is not None:
        yield one
        at = one.parent_snapshot_id


def _stored_later(snapshots: "Iterable[Snapshot]", state: State) -> int | None:
    """Return the newest snapshot whose commit stored positions after those of the state; None for none."""
    for one in sorted(snapshots, key=lambda one: one.sequence_number or 0, reverse=True):
        if one.snapshot_id == state.snapshot or (one.sequence_number or 0) <= state.sequence:
            break
        note = one.summary.additional_properties.get(NOTE) if one.summary else None
        if note is not None and json.loads(note).get("kind") not in _WITHOUT_POSITIONS:
            return one.snapshot_id
    return None
