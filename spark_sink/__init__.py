"""Kafka to Delta on Spark, every record exactly once, as a member of the consumer group."""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from spark_sink.errors import SparkSinkError
    from spark_sink.lake.positions import positions
    from spark_sink.sink.delta_sink import DeltaExactlyOnceSink
    from spark_sink.source.kafka_source import KafkaGroupSource

# Loaded at first use: pyspark and pyarrow take most of a second, and `azimuth --help` does not need them.
_HOMES = {
    "DeltaExactlyOnceSink": "sink.delta_sink",
    "KafkaGroupSource": "source.kafka_source",
    "SparkSinkError": "errors",
    "positions": "lake.positions",
}

__all__ = ["DeltaExactlyOnceSink", "KafkaGroupSource", "SparkSinkError", "positions"]


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _HOMES, name)
