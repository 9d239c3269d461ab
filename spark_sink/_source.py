"""`spark.readStream.format("kafka-group")`: a streaming source that is a member of a consumer group."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from spark_sink._options import SourceOptions
from spark_sink._reader import KafkaGroupReader
from spark_sink._rows import LANDED, schema


class KafkaGroupSource(DataSource):
    """Kafka topics as a stream, read as a member of a consumer group.

    Several queries with the same `kafka.group.id` share the partitions; rebalances change what a running query reads.
    Options: `kafka.*`, `subscribe` or `subscribePattern`, `startingOffsets`, `startingTimestamp`,
    `startingOffsetsByTimestamp`, `maxOffsetsPerTrigger`, `minPartitions`, `failOnDataLoss`, `includeHeaders`,
    `positions`, `assignor`, `workers`, `epsilon`, `rack`, `agent`, `parallelism`, `telemetry`, `landing`.

    Raises:
        OptionError: an option is unknown, missing, contradictory or has no meaning.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "kafka-group"

    def schema(self) -> str:
        """Columns of the raw format; descriptions of data files where the tasks write them."""
        if self._options.landing is not None:
            return LANDED
        return schema(headers=self._options.headers)

    def streamReader(self, schema: StructType) -> KafkaGroupReader:  # noqa: N802, ARG002 -- Spark's call
        """Make the reader; it joins nothing yet."""
        return KafkaGroupReader(self._options)

    @property
    def _options(self) -> SourceOptions:
        return SourceOptions.parse(dict(self.options))
