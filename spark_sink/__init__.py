"""Kafka to Delta and Iceberg on Spark, every record exactly once, as a member of the consumer group."""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from spark_sink.agent.start.warm_python import warm_processes
    from spark_sink.errors import SparkSinkError
    from spark_sink.lake.positions import positions
    from spark_sink.sink.delta_sink import DeltaExactlyOnceSink
    from spark_sink.sink.iceberg_sink import IcebergExactlyOnceSink
    from spark_sink.sink.spark_landing import SparkLanding
    from spark_sink.source.fixed_offsets import fixed_offsets
    from spark_sink.source.kafka_source import KafkaGroupSource
    from spark_sink.source.query_metrics import QueryMetrics
    from spark_sink.source.received_traffic import QueryTraffic
    from spark_sink.source.union_read.union_reader import union

# Loaded at first use: pyspark and pyarrow take most of a second, and `azimuth --help` does not need them.
_HOMES = {
    "DeltaExactlyOnceSink": "sink.delta_sink",
    "IcebergExactlyOnceSink": "sink.iceberg_sink",
    "KafkaGroupSource": "source.kafka_source",
    "QueryMetrics": "source.query_metrics",
    "QueryTraffic": "source.received_traffic",
    "SparkLanding": "sink.spark_landing",
    "SparkSinkError": "errors",
    "fixed_offsets": "source.fixed_offsets",
    "positions": "lake.positions",
    "union": "source.union_read.union_reader",
    "warm_processes": "agent.start.warm_python",
}

__all__ = [
    "DeltaExactlyOnceSink",
    "IcebergExactlyOnceSink",
    "KafkaGroupSource",
    "QueryMetrics",
    "QueryTraffic",
    "SparkLanding",
    "SparkSinkError",
    "fixed_offsets",
    "positions",
    "union",
    "warm_processes",
]


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _HOMES, name)
