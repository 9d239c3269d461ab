"""Fixtures for all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_sink.demo.cluster import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One three-zone Kafka for all integration tests of a run: name your topics and groups so that they are yours.

    A test that kills a broker starts it again before it ends.
    """
    with Cluster.up(Path(tmp_path_factory.mktemp("kafka")) / "cluster") as started:
        yield started
