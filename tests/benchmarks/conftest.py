"""Fixtures of the benchmarks."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.benchmarks.spark_session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all benchmarks, because a JVM's heap size is fixed at its start."""
    with session() as spark:
        yield spark
