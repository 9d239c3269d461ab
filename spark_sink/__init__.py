"""Kafka to Delta on Spark, every record exactly once, as a member of the consumer group."""

import typing

from spark_sink import _lazy

if typing.TYPE_CHECKING:
    from spark_sink._errors import SparkSinkError
    from spark_sink._positions import positions
    from spark_sink._sink import DeltaExactlyOnceSink
    from spark_sink._source import KafkaGroupSource

# Loaded when asked for: pyspark and pyarrow take most of a second, which `azimuth --help` need not wait for.
_HOMES = {
    "DeltaExactlyOnceSink": "_sink",
    "KafkaGroupSource": "_source",
    "SparkSinkError": "_errors",
    "positions": "_positions",
}

__all__ = ["DeltaExactlyOnceSink", "KafkaGroupSource", "SparkSinkError", "positions"]


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return _lazy.attribute(__name__, _HOMES, name)
