"""What the metadata of a rolled back table says of its former positions and of former rewinds."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from spark_sink.errors import TableError
from spark_sink.lake.iceberg.positions_in_table_properties import PROPERTY, Rewind, State, decode
from spark_sink.lake.iceberg.rollback_detection import descends, refuse_other_past
from spark_sink.ranges.batch_offset import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


def former_state(name: str, table: "Table") -> State | None:
    """Return what the table stored when its current snapshot was the newest; None if that metadata file is gone.

    A position is not always the offset after the last row: the newest records of a partition may be in the quarantine.

    Args:
        name: of the table, in messages.
        table: the table after a rollback.
    """
    for one in reversed(table.metadata.metadata_log):
        past = _read(table, one.metadata_file)
        if past is None or past.current_snapshot_id != table.metadata.current_snapshot_id:
            continue
        try:
            state = decode(past.properties.get(PROPERTY), name)
            refuse_other_past(name, past, state)
        except TableError:  # that of the rollback itself, or one without positions
            continue
        if state.snapshot:
            return state
    return None


def rewound_past(metadata: "TableMetadata", state: State) -> Mapping[TopicPartition, int]:
    """Return from which offset on bad records that belong to the rows may have been removed, by partition.

    A rewind removes bad records that were decoded together with later rows. If the table is set to such rows again,
    the quarantine does not fit them.
    """
    return _since(metadata, state, lambda one: one.floors)


def read_again(metadata: "TableMetadata", state: State) -> Mapping[TopicPartition, int]:
    """Return from which offset on agents may have read records of the rows again, by partition.

    Other records may be bad the second time. If the table is set to the rows of the first time again, such a record is
    in both table and quarantine.
    """
    return _since(metadata, state, lambda one: one.again)


def _since(
    metadata: "TableMetadata", state: State, offsets: Callable[[Rewind], Mapping[TopicPartition, int]]
) -> Mapping[TopicPartition, int]:
    """Return the lowest offsets of the rewinds after the newest one that the rows descend from: they fit that one."""
    ours = [one for one in state.rewound if descends(metadata, one.snapshot, one.sequence)]
    newest = max((one.sequence for one in ours), default=-1)
    found: dict[TopicPartition, int] = {}
    for one in state.rewound:
        if one.sequence > newest:
            for key, at in offsets(one).items():
                found[key] = min(at, found.get(key, at))
    return found


def with_rewind(metadata: "TableMetadata", state: State, new: Rewind) -> tuple[Rewind, ...]:
    """Return the rewinds to store: a snapshot from before each of them is still there and could come back."""
    oldest = min((one.sequence_number or 0 for one in metadata.snapshots), default=math.inf)
    kept = (*state.rewound, *((new,) if new.floors or new.again else ()))
    return tuple(one for one in kept if one.sequence > oldest)


def _read(table: "Table", path: str) -> "TableMetadata | None":
    from pyiceberg.serializers import FromInputFile

    try:
        return FromInputFile.table_metadata(table.io.new_input(path))
    except Exception:  # noqa: BLE001 -- the file is gone, or its store does not answer: the rows say enough
        return None
