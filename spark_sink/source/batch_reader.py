"""The reader of `spark.read`: fixed ranges, no membership, the columns and the decoding of the stream."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_sink.formats import Decoder, decode_batch
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.task_packing import Packing, pack
from spark_sink.source.stream_reader import TaskRanges


class KafkaBatchReader(DataSourceReader):
    """Reads ranges of offsets that are set when the query is planned.

    Args:
        options: options of the source.
        decoder: decoder of values; None for the raw format.
    """

    def __init__(self, options: SourceOptions, decoder: Decoder | None = None) -> None:
        self._options = options
        self._decoder = decoder

    def partitions(self) -> list[TaskRanges]:
        """Find the ranges, and pack them into tasks."""
        # Imported here, because the tasks need no clients that answer questions.
        from spark_sink.kafka.partition_offsets import PartitionOffsets  # noqa: PLC0415
        from spark_sink.source.batch_read_ranges import batch_ranges  # noqa: PLC0415

        logs = PartitionOffsets(self._options)
        logs.check_rights(self._options.topics)
        ranges = batch_ranges(logs, self._options)
        identities = logs.identities({one.topic for one in ranges})
        packing = Packing(tasks=self._options.parallelism, min_tasks=self._options.min_partitions)
        # Spark makes a task of its own, without a partition, from an empty list.
        return [TaskRanges(task, identities) for task in pack(ranges, packing)] or [TaskRanges([], {})]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the ranges of a task, in Spark's Python workers."""
        from spark_sink.fetch.range_reader import fetch  # noqa: PLC0415 -- librdkafka, for the tasks only

        assert isinstance(partition, TaskRanges)  # noqa: S101 -- Spark passes the results of `partitions`
        rows = fetch(partition.ranges, self._options.fetch, partition.identities)
        yield from rows if (decoder := self._decoder) is None else (decode_batch(batch, decoder) for batch in rows)
