"""A batch write outside of a stream: its options name the ranges of offsets that its rows are from. Pure.

The ranges go through the same compare and swap as those of a stream's batch: rows that the table has are left out, and
a range that begins after the table's position is refused. Two mistakes would lose rows in silence, because the table's
positions are past them, so both are refused:

* A range before the group's first offset in the table: the table never had these rows.
* The ranges of the table's newest batch write with other rows, such as the second half after a filter. For this the
  write leaves a number in the table that stands for its ranges and its rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from assignors.hashing import hash64
from spark_sink.errors import OptionError, TableError
from spark_sink.options.starting_offsets import offsets_by_partition
from spark_sink.options.texts import json_value
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition

TOPIC_IDS = "topicIds"
_START, _END = "startingOffsets", "endingOffsets"
_QUERY = "ranges"
_ROWS_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeWrite:
    """A write of the rows of some ranges.

    Attributes:
        offset: the ranges.
    """

    offset: Offset

    def noted(self, part: int | None) -> dict[str, int]:
        """Return the number that this write leaves in the table.

        Args:
            part: stands for the rows, of `foreach_batch_write.part_of`; None if the write adds nothing.
        """
        return {} if part is None else {_QUERY: self._number(part)}

    def refuse_rest(self, table: str, known: Mapping[str, int], part: int, rows: int) -> None:
        """Refuse a write that adds nothing if the table's newest batch write had other rows of the same ranges.

        Args:
            table: its name.
            known: the numbers in the table.
            part: stands for the rows of this write.
            rows: their number.

        Raises:
            TableError: it had.
        """
        last, own = known.get(_QUERY), self._number(part)
        if rows and last is not None and last != own and last >> _ROWS_BITS == own >> _ROWS_BITS:
            raise TableError(
                f"{table}: these ranges were written here before with other rows, so these {rows} rows would look like "
                "a replay; they were not written. Write all rows of a range at once, for example with "
                "DataFrame.unionByName, or write to another table"
            )

    def refuse_before(self, table: str, beginnings: Mapping[TopicPartition, int]) -> None:
        """Refuse rows from before the group's first offset in the table.

        Args:
            table: its name.
            beginnings: the group's first offset by partition.

        Raises:
            TableError: a range begins before it.
        """
        for key, one in self.offset.ranges.items():
            if one.records and one.begin < beginnings.get(key, 0):
                raise TableError(
                    f"{table}: {key.topic}/{key.partition}: the range [{one.begin}, {one.end}) begins before offset "
                    f"{beginnings[key]}, where this group began in the table, and rows from before it cannot be added; "
                    f"nothing was written. Begin the range at {beginnings[key]} or later, or write to another table"
                )

    def _number(self, part: int) -> int:
        ranges = hash64(self.offset.json()) >> (_ROWS_BITS + 1)
        return ranges << _ROWS_BITS | part & (1 << _ROWS_BITS) - 1


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
    identities = json_value(given.get(TOPIC_IDS.lower(), "{}"), TOPIC_IDS)
    if not isinstance(identities, dict) or not all(isinstance(one, str) for one in identities.values()):
        raise OptionError(f'option {TOPIC_IDS!r}: need {{"topic": "<cluster id>/<topic id>"}}, got {identities!r}')
    return Offset.of((Range(*key, begin, ends[key]) for key, begin in begins.items()), identities)


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
