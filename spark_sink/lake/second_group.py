"""Refuses a second group in a table: it would write the records of the first group again. Pure."""

from collections.abc import Callable, Mapping

from spark_sink.errors import TableError
from spark_sink.ranges.batch_offset import TopicPartition


def refuse_second_group(
    table: str,
    group: str,
    positions: Mapping[str, Mapping[TopicPartition, int]],
    begins: Callable[[TopicPartition], bool],
) -> None:
    """Refuse a group that begins to write partitions that another group has written.

    Args:
        table: address of the table.
        group: the consumer group.
        positions: the next offsets in the table, by group.
        begins: whether the group begins to write a partition.

    Raises:
        TableError: another group has written such a partition.
    """
    for other in sorted(positions.keys() - {group}):
        for key, at in sorted(positions[other].items()):
            if begins(key):
                raise TableError(
                    f"{table}: {key.topic}/{key.partition} was written here by group {other!r}, up to offset {at}; "
                    f"group {group!r} would write its records again. Use that group, or another table"
                )
