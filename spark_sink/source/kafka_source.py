"""`.format("kafka-group")`: a streaming source that is a member of a consumer group, and a batch read without one."""

import pyarrow as pa
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from spark_sink.errors import OptionError
from spark_sink.fetch.raw_columns import LANDED, arrow_schema, schema_without
from spark_sink.formats import decoded_schema
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.value_format import TABLE_SCHEMA
from spark_sink.source.batch_reader import KafkaBatchReader, refuse_for_batch
from spark_sink.source.source_decoder import make_decoder
from spark_sink.source.stream_reader import KafkaGroupReader


class KafkaGroupSource(DataSource):
    """Kafka topics as a stream, read as a member of a consumer group, or as a batch, without a group.

    Several queries with the same `kafka.group.id` share the partitions; rebalances change what a running query reads.
    Options: `kafka.*`, `subscribe` or `subscribePattern`, `startingOffsets`, `startingTimestamp`,
    `startingOffsetsByTimestamp`, `maxOffsetsPerTrigger`, `maxBytesPerTrigger`, `minOffsetsPerTrigger`,
    `maxTriggerDelay`, `minPartitions`, `failOnDataLoss`, `includeHeaders`, `includeTimestampType`,
    `includeKey`, `includeValue`,
    `positions`, `assignor`, `workers`, `workersTopic`, `epsilon`, `rack`, `agent`, `parallelism`,
    `telemetry`, `holding`, `traffic`, `landing`; for a batch `endingOffsets`, `endingTimestamp`,
    `endingOffsetsByTimestamp`.
    For the format of values: `valueFormat` (raw, json, avro, protobuf), `valueSchema`, `valueSubject`, `valueMessage`,
    `inferRecords`, `unknownFields`, `valueNull`, `schema.registry.*`; decoded values become columns, with the column
    `_quarantine`, which the sink removes. docs/reference/options.md lists the defaults.

    Raises:
        OptionError: an option is unknown, missing, contradictory or invalid.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "kafka-group"

    def schema(self) -> str | StructType:
        """Return columns of the raw format or of decoded values, or of file descriptions if the tasks write files."""
        options = SourceOptions.parse(dict(self.options), stream=False)  # Spark does not say which of the two it is
        if options.landing is not None:
            return LANDED
        decoder = make_decoder(options)
        if decoder is None:
            columns = arrow_schema(headers=options.headers, timestamp_type=options.timestamp_type)
        else:
            columns = decoded_schema(arrow_schema(headers=options.headers), decoder.columns)
        return from_arrow_schema(schema_without(columns, options.left_out))

    def reader(self, schema: StructType) -> KafkaBatchReader:
        """Create the reader of a batch."""
        options = SourceOptions.parse(dict(self.options), stream=False)
        refuse_for_batch(options)
        raw = options.value.name == "raw"
        _refuse_other_columns(schema, options)
        return KafkaBatchReader(
            options, None if raw else make_decoder(options, to_arrow_schema(schema, timezone="UTC"))
        )

    def streamReader(self, schema: StructType) -> KafkaGroupReader:  # noqa: N802 -- Spark's call
        """Create the reader; it does not join yet."""
        options = SourceOptions.parse(dict(self.options))
        if options.landing is None:
            _refuse_other_columns(schema, options)
        if options.value.name == "raw":
            return KafkaGroupReader(options)
        if options.landing is not None:
            from spark_sink.sink.direct_landing import table_schema
            from spark_sink.source.registry_columns import follows_registry

            return KafkaGroupReader(
                options,
                make_decoder(options, table_schema(options.landing)),
                per_batch=options.value.schema == TABLE_SCHEMA or follows_registry(options),
            )
        return KafkaGroupReader(options, make_decoder(options, to_arrow_schema(schema, timezone="UTC")))


def _refuse_other_columns(schema: StructType, options: SourceOptions) -> None:
    """Refuse the columns of a user's `schema(...)`: each task would fail, or read a value as another type."""
    raw = options.value.name == "raw"
    columns = arrow_schema(headers=options.headers, timestamp_type=options.timestamp_type)
    fixed = schema_without(columns if raw else decoded_schema(columns, pa.schema([])), options.left_out)
    need, have = ([(one.name, one.dataType.simpleString()) for one in of] for of in (from_arrow_schema(fixed), schema))
    if have != need if raw else not set(need) <= set(have):
        named = ", ".join(f"{name} {kind}" for name, kind in need if not name.startswith("_"))
        raise OptionError(
            f"schema(...) cannot be set: the columns are {named}{'' if raw else ' and those of the values'}; "
            "leave it out, and select and cast them after load()"
        )
