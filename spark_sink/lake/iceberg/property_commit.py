"""Commits that set what an Iceberg table stores, beside the batches: once, on top of the table as it was read."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spark_sink.lake.iceberg.data_entries import entry
from spark_sink.lake.iceberg.positions_in_table_properties import PROPERTY, State, encode
from spark_sink.lake.iceberg.rollback_detection import NOTE
from spark_sink.lake.iceberg.snapshot_commit import Prepared, commit
from spark_sink.lake.iceberg.stored_files import ListedFile, listed_files, read_file, write_without
from spark_sink.lake.iceberg.stored_rows import StoredTable
from spark_sink.lake.row_offsets import above
from spark_sink.lake.table_contract import KEYS, DataFile
from spark_sink.ranges.batch_offset import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable


def set_state(
    stored: StoredTable,
    state: Callable[[int, int], State],
    note: Mapping[str, object],
    removed: Sequence[ListedFile] = (),
    added: Sequence[DataFile] = (),
) -> None:
    """Commit a state, and replace files with it; nothing is repeated.

    Args:
        stored: the table as it was read; the commit asserts its snapshot.
        state: returns the state, given the id and the sequence number of the new snapshot.
        note: JSON for the table's history.
        removed: files to remove.
        added: files to add.

    Raises:
        ConflictError: another writer was faster; nothing was changed.
        TableError: the commit failed; it may or may not have succeeded.
    """
    metadata = stored.table.metadata
    number, sequence = metadata.new_snapshot_id(), metadata.next_sequence_number()
    after = replace(state(number, sequence), snapshot=number, sequence=sequence)
    prepared = Prepared(
        entries=[entry(stored.name, one, metadata) for one in added],
        properties={PROPERTY: encode(after)},
        summary={NOTE: json.dumps(dict(note), separators=(",", ":"))},
        removed=[one.entry for one in removed],
    )
    commit(stored.table, number, prepared)


def without_rows_from(
    stored: StoredTable, floors: Mapping[TopicPartition, int]
) -> tuple[Sequence[ListedFile], Sequence[DataFile]]:
    """Write the files with rows at or above an offset of their partition again, without these rows.

    Args:
        stored: the table.
        floors: the lowest offset to leave out, by partition; at least one.

    Returns:
        The files to remove, and the new files, which no commit names yet.

    Raises:
        TableError: a file cannot be read or written.
    """
    from spark_sink.lake.iceberg.offset_filters import from_offsets

    dropped: dict[int, Sequence[int]] = {}
    losing: list[ListedFile] = []
    listed: Iterable[ListedFile] = listed_files(stored.table, from_offsets(floors))
    for one in listed:
        mask = above(read_file(stored.table, one, tuple(KEYS)), floors)
        if positions := np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist():
            dropped[one.number] = positions
            losing.append(one)
    return losing, write_without(stored.table, losing, dropped) if losing else ()
