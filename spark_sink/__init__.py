"""Kafka to Delta on Spark, every record exactly once, as a member of the consumer group."""

import importlib
import typing

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
    if name not in _HOMES:
        raise AttributeError(f"module 'spark_sink' has no attribute {name!r}")
    return getattr(importlib.import_module(f"spark_sink.{_HOMES[name]}"), name)
