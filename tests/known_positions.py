"""Positions of a table in memory, as `spark_sink.positions` returns them for some partitions."""

from collections.abc import Collection, Mapping

from spark_sink.ranges.batch_offset import TopicPartition


def known_positions(
    table: Mapping[TopicPartition, int], partitions: Collection[TopicPartition] | None
) -> Mapping[TopicPartition, int]:
    """Return the positions of these partitions, None for all."""
    return {key: at for key, at in table.items() if partitions is None or key in partitions}
