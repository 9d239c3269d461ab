"""Fixtures for all tests."""

import os
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

    A test that kills a broker starts it again before it ends. Where AZIMUTH_TEST_CLUSTER names the folder of a cluster
    that is up (`azimuth cluster up --directory`), that one is used and left up.
    """
    standing = os.environ.get("AZIMUTH_TEST_CLUSTER")
    if standing:
        yield Cluster.open(Path(standing))
        return
    with Cluster.up(Path(tmp_path_factory.mktemp("kafka")) / "cluster", tied=True) as started:
        yield started
