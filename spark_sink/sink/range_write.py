"""A batch write outside of a stream: its options name the ranges of offsets that its rows are from. Pure.

The ranges go through the same compare and swap as those of a stream's batch. A stream's rows below the table's position
are a replay and are left out. Here they may as well be rows that the table never had: those of another filter, or from
before the group's first offset in the table. So only the newest batch write of a table may be repeated, with the same
ranges and rows, and adds nothing then; every other write that has such rows is refused. For this each write leaves a
number in the table that stands for its ranges and its rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from assignors.hashing import hash64, hash64s, mix64s
from spark_sink.errors import OptionError, TableError
from spark_sink.lake.table_contract import Snapshot
from spark_sink.options.starting_offsets import offsets_by_partition, topic_ids
from spark_sink.options.texts import json_value
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition

_START, _END = "startingOffsets", "endingOffsets"
_QUERY = "ranges"
_ROWS_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeWrite:
    """A write of the rows of some ranges.

    Attributes:
        offset: the ranges.
        rows: stands for the rows, the sum of `fingerprint`.
    """

    offset: Offset
    rows: int

    @property
    def number(self) -> int:
        """The number that the write leaves in the table: 31 bits for the ranges, 32 bits for the rows."""
        ranges = hash64(self.offset.json()) >> (_ROWS_BITS + 1)
        return ranges << _ROWS_BITS | hash64(str(self.rows)) >> (64 - _ROWS_BITS)

    def noted(self, part: int | None) -> dict[str, int]:  # noqa: ARG002 -- as of a write in foreachBatch
        """Return the numbers that this write leaves in the table."""
        return {_QUERY: self.number}

    def refuse_lost(self, table: str, snapshot: Snapshot, left_out: int) -> None:
        """Refuse a write with rows below the table's positions, unless it repeats the newest one.

        Args:
            table: its name.
            snapshot: its state.
            left_out: number of such rows.

        Raises:
            TableError: the rows would be left out, and nothing shows that the table has them.
        """
        if not left_out or snapshot.writes.get(_QUERY) == self.number:
            return
        key, one = next(
            (key, one) for key, one in self.offset.ranges.items() if one.begin < snapshot.positions.get(key, 0)
        )
        at, first = snapshot.positions[key], snapshot.beginnings.get(key, 0)
        reach = f"to offset {at}" if one.begin >= first else f"from offset {first} to {at}"
        raise TableError(
            f"{table}: it has come {reach} of {key.topic}/{key.partition}, and {left_out} rows of this write are from "
            "before the table's positions, so they would be left out; nothing was written. A write may be repeated "
            "until the next one, with the same rows. Begin the ranges where the table ends: give its address as option "
            "'positions' to spark_sink.fixed_offsets; or write to another table"
        )


def fingerprint(batch: pa.RecordBatch) -> int:
    """Return a number that stands for the records of some rows; those of several batches are added.

    Args:
        batch: rows with the columns topic, partition and offset, without nulls in them.
    """
    topics = batch.column("topic").dictionary_encode()
    names = hash64s(topics.dictionary.to_pylist())
    offsets, partitions = (
        batch.column(name).cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.uint64)
        for name in ("offset", "partition")
    )
    keys = mix64s(names[topics.indices.to_numpy(zero_copy_only=False)] + partitions)
    return int(mix64s(keys + offsets).sum(dtype=np.uint64))


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
