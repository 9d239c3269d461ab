"""Positions of a table in memory, as `spark_sink.positions` returns them for some topics."""

from collections.abc import Collection, Mapping

from spark_sink.ranges.batch_offset import TopicPartition


def of_topics(table: Mapping[TopicPartition, int], topics: Collection[str] | None) -> Mapping[TopicPartition, int]:
    """Return the positions of these topics, None for all."""
    return {key: at for key, at in table.items() if topics is None or key.topic in topics}
