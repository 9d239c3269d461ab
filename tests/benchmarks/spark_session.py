"""The Spark session that the benchmarks of source and sink share, and the marks of their tests."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from spark_sink import DeltaExactlyOnceSink, IcebergExactlyOnceSink, KafkaGroupSource, warm_processes
from tests.benchmarks.spark_peer_jars import delta_jars, peer_jars

# pyspark leaves sockets open and uses what Python has deprecated.
MARKS = [
    pytest.mark.benchmark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@contextmanager
def session() -> Iterator[SparkSession]:
    """Open a session with an agent's heap, our source and sinks, and the jars of the peers if they are available."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warm_processes():
        yield from _session()


def _session() -> Iterator[SparkSession]:
    config: dict[str, bool | float | int | str | None] = {
        "spark.driver.memory": "768m",
        "spark.jars": ",".join(map(str, [*peer_jars(), *delta_jars()])),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=config).getOrCreate()
    spark.dataSource.register(KafkaGroupSource)
    spark.dataSource.register(DeltaExactlyOnceSink)
    spark.dataSource.register(IcebergExactlyOnceSink)
    try:
        yield spark
    finally:
        spark.stop()
