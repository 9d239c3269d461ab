"""A batch write outside of a stream: its options name the ranges of offsets that its rows are from. Pure.

The ranges go through the same compare and swap as those of a stream's batch. A stream's rows below the table's position
are a replay and are left out. Here they may as well be rows that the table never had: those of another filter, or from
before the group's first offset in the table. So only the newest batch write of a table may be repeated, with the same
ranges and rows, and adds nothing then; every other write that has such rows is refused. For this each write leaves a
number in the table that stands for its ranges and its rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from assignors.hashing import hash64, hash64s, mix64s
from spark_sink.errors import OptionError, TableError
from spark_sink.lake.table_contract import DataFile, Snapshot
from spark_sink.options.option_texts import json_value
from spark_sink.options.starting_offsets import offsets_by_partition, topic_ids
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition

_START, _END = "startingOffsets", "endingOffsets"
_QUERY = "ranges"
_ROWS_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeWrite:
    """A write of the rows of some ranges.

    Attributes:
        offset: the ranges.
        rows: stands for the rows of each topic, the sum of `fingerprints`.
    """

    offset: Offset
    rows: Mapping[str, int]

    def only(self, offset: Offset) -> "RangeWrite":
        """Return the part for one table, whose ranges these are."""
        topics = {one.topic for one in offset}
        return RangeWrite(offset=offset, rows={topic: number for topic, number in self.rows.items() if topic in topics})

    @property
    def number(self) -> int:
        """The number that the write leaves in the table: 31 bits for the ranges, 32 bits for the rows."""
        ranges = hash64(self.offset.json()) >> (_ROWS_BITS + 1)
        return ranges << _ROWS_BITS | hash64(repr(sorted(self.rows.items()))) >> (64 - _ROWS_BITS)

    def noted(self, part: int | None) -> dict[str, int]:  # noqa: ARG002 -- as of a write in foreachBatch
        """Return the numbers that this write leaves in the table."""
        return {_QUERY: self.number}

    def refuse_lost(self, table: str, snapshot: Snapshot, files: Iterable[DataFile]) -> None:
        """Refuse a write with rows below the table's positions, unless it repeats the newest one.

        Args:
            table: its name.
            snapshot: its state.
            files: of the write for this table.

        Raises:
            TableError: the rows would be left out, and nothing shows that the table has them.
        """
        if snapshot.writes.get(_QUERY) == self.number:
            return
        for key, span in sorted((key, span) for file in files for key, span in file.spans.items()):
            at = snapshot.positions.get(key, 0)
            if span.first < at:
                first = max(snapshot.beginnings.get(key, 0), 0)
                raise TableError(
                    f"{table}: it has come from offset {first} to {at} of {key.topic}/{key.partition}, and this write "
                    f"has rows from offset {span.first} on, which would be left out; nothing was written to it. A "
                    "write may be repeated until the next one, with the same rows. Begin the ranges where the table "
                    "ends: give its address as option 'positions' to spark_sink.fixed_offsets; or write to another one"
                )


def fingerprints(batch: pa.RecordBatch) -> dict[str, int]:
    """Return a number for each topic that stands for its records in some rows; those of several batches are added.

    Args:
        batch: rows with the columns topic, partition and offset, without nulls in them.
    """
    topics = batch.column("topic").dictionary_encode()
    names = topics.dictionary.to_pylist()
    numbers = topics.indices.to_numpy(zero_copy_only=False)
    offsets, partitions = (
        batch.column(name).cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.uint64)
        for name in ("offset", "partition")
    )
    records = mix64s(mix64s(hash64s(names)[numbers] + partitions) + offsets)
    sums = np.zeros(len(names), np.uint64)
    np.add.at(sums, numbers, records)
    return {name: int(number) for name, number in zip(names, sums, strict=True)}


def added(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add the results of `fingerprints`."""
    sums: dict[str, int] = {}
    for one in found:
        for topic, number in one.items():
            sums[topic] = (sums.get(topic, 0) + number) % 2**64
    return sums


def ranges_of_write(options: Mapping[str, str]) -> Offset | None:
    """Return the ranges that the options of a write name; None if they name none.

    Args:
        options: `startingOffsets` and `endingOffsets`, as `{"topic": {"0": offset}}` with the same partitions, and
            `topicIds`, as `{"topic": "<cluster id>/<topic id>"}`; names in any case.

    Raises:
        OptionError: one of them is invalid.
    """
    given = {name.lower(): value for name, value in options.items()}
    if _END.lower() not in given:
        return None
    begins, ends = (_numbers(given, name) for name in (_START, _END))
    if not begins and not ends:
        raise OptionError(f"options {_START!r} and {_END!r} name no partition, so no rows can be from their ranges")
    if only := sorted(begins.keys() ^ ends.keys()):
        raise OptionError(
            f"options {_START!r} and {_END!r}: {only[0].topic}/{only[0].partition} is in one of them only; a batch "
            "write needs both offsets of each partition"
        )
    for key, begin in begins.items():
        if begin > ends[key]:
            raise OptionError(
                f"option {_END!r}: {key.topic}/{key.partition}: the range ends at {ends[key]} and begins at {begin}"
            )
    return Offset.of((Range(*key, begin, ends[key]) for key, begin in begins.items()), topic_ids(given))


def _numbers(given: Mapping[str, str], name: str) -> dict[TopicPartition, int]:
    text = given.get(name.lower(), "")
    if not text.lstrip().startswith("{"):
        raise _no_numbers(name, text or "nothing")
    found = offsets_by_partition(json_value(text, name), name, -2)
    for key, number in found.items():
        if number < 0:
            raise _no_numbers(name, f"{number} of {key.topic}/{key.partition}")
    return found


def _no_numbers(name: str, got: str) -> OptionError:
    return OptionError(
        f"option {name!r}: {got}; a batch write needs the offset of each partition as a number, because the end of a "
        "log moves: spark_sink.fixed_offsets(options) finds them, for the read and the write"
    )
