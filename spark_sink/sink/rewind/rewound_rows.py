"""Rows of an Iceberg table from before an earlier rewind, which the quarantine does not fit any more. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from spark_sink.errors import TableError
from spark_sink.lake.holes_and_doubles import Run, Runs
from spark_sink.lake.iceberg.positions_in_table_properties import Offsets, State
from spark_sink.ranges.batch_offset import TopicPartition

Found = Mapping[TopicPartition, Runs]


def above(rows: Found, floors: Offsets) -> dict[TopicPartition, int]:
    """Return the floors with rows above them: these were decoded with bad records that a rewind removed.

    Args:
        rows: offsets of the rows.
        floors: from which offset on a rewind removed bad records.
    """
    return {key: at for key, at in floors.items() if key in rows and max(end for _, end in rows[key]) > at}


def in_both(rows: Found, bad: Found, again: Offsets) -> dict[TopicPartition, int]:
    """Return the first offset of each partition that is a row and became a bad record when it was read again.

    Args:
        rows: offsets of the rows.
        bad: offsets of the bad records.
        again: from which offset on records were read again; below, a record in both was replayed.
    """
    found = {key: _first_in_both(rows.get(key, ()), list(bad.get(key, ())), at) for key, at in again.items()}
    return {key: at for key, at in found.items() if at is not None}


def refuse_undone(address: str, state: State, undone: Offsets) -> None:
    """Refuse such rows.

    Args:
        address: of the table.
        state: of the table.
        undone: the first offset of these rows, by partition.

    Raises:
        TableError: there are some.
    """
    if not undone:
        return
    places = ", ".join(f"{key.topic}/{key.partition} from offset {at} on" for key, at in sorted(undone.items()))
    raise TableError(
        f"{address}: the current snapshot is from before an earlier `azimuth rewind`, which removed bad records that "
        "belong to its rows from the quarantine, or after which some of its rows became bad records; nothing was "
        f"changed. Set the current snapshot to {state.snapshot}, or delete the rows of {places}, and run the command "
        "again: the agents then read these records again"
    )


def _first_in_both(rows: Iterable[Run], bad: Sequence[Run], at: int) -> int | None:
    ends = [end for _, end in bad]
    for first, end in rows:
        begin = max(first, at)
        number = bisect_right(ends, begin)
        if number < len(bad) and (low := max(begin, bad[number][0])) < end:
            return low
    return None
