"""Positions that a rewind sets back, of a table of either format. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spark_sink.errors import TableError
from spark_sink.ranges.batch_offset import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound:
    """The position of one partition.

    Attributes:
        key: the partition.
        before: the table's position.
        after: the position that belongs to the rows; the group's first offset if the partition has none.
    """

    key: TopicPartition
    before: int
    after: int


def behind(
    table: str, ends: Mapping[TopicPartition, int], positions: Mapping[TopicPartition, int], how: str
) -> list[Rewound]:
    """Return the positions that are ahead of the rows.

    Args:
        table: address, for messages.
        ends: the position that belongs to the rows, by partition.
        positions: those of the table.
        how: says how rows may have come past their position.

    Raises:
        TableError: there are rows past a position.
    """
    found = []
    for key, before in sorted(positions.items()):
        after = ends[key]
        if after > before:
            raise TableError(
                f"{table}: the table has rows of {key.topic}/{key.partition} up to offset {after}, past its position "
                f"{before}: {how}. Nothing was changed; delete the rows of this partition from offset {before} on, and "
                "run the command again"
            )
        if after < before:
            found.append(Rewound(key=key, before=before, after=after))
    return found


def ahead(held: Mapping[TopicPartition, int], reached: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the positions of the table that the quarantine is ahead of.

    Args:
        held: positions of the quarantine.
        reached: those of the table.
    """
    return {key: reached.get(key, 0) for key, at in held.items() if at > reached.get(key, 0)}


def quarantine_changes(table: str, quarantine: str, records: int, *, lost: bool, applied: bool) -> Iterator[str]:
    """Say what a rewind changes in the quarantine.

    Args:
        table: address of the table.
        quarantine: address of its quarantine.
        records: how many bad records are removed from it.
        lost: the table names bad records that are gone.
        applied: the change was written.
    """
    verb = "were" if applied else "would be"
    if records:
        yield (
            f"{quarantine}: {records} bad records from the new positions on {verb} removed from it, because the agents "
            "read them again: Kafka must still have them"
        )
    if lost:
        yield (
            f"{quarantine}: bad records that the table names are gone; those below the new positions {verb} given up: "
            f"`azimuth verify {table}` lists their offsets"
        )
