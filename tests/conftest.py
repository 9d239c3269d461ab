"""Fixtures for all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from spark_sink.demo.cluster import Cluster

# No example has a deadline: what is slow on a busy machine is no wrong answer.
settings.register_profile("azimuth", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("azimuth")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One three-zone Kafka for all integration tests of a run: name your topics and groups so that they are yours.

    A test that kills a broker starts it again before it ends.
    """
    with Cluster.up(Path(tmp_path_factory.mktemp("kafka")) / "cluster", tied=True) as started:
        yield started
