"""Iceberg tables under the chaos of Delta tables: queries on Spark, agents of a fleet, and jobs with claims."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.chaos.draws import SEEDS
from tests.integration.spark_sink.chaos.lakes import IcebergLake
from tests.integration.spark_sink.chaos.test_claims import Claims
from tests.integration.spark_sink.chaos.test_fleet import Fleet
from tests.integration.spark_sink.chaos.test_sink import Decoded, Sink
from tests.integration.spark_sink.chaos.torment import Torment

pytestmark = pytest.mark.chaos

MakeTopic = Callable[..., str]


class IcebergSink(Sink):
    """Two queries; the other program expires snapshots instead of joining files."""

    form = "iceberg raw"
    kind = IcebergLake


class IcebergDecoded(Decoded):
    """The same with JSON."""

    form = "iceberg decoded"
    kind = IcebergLake


class IcebergFleet(Fleet):
    """Three light agents."""

    form = "iceberg fleet"
    kind = IcebergLake


class IcebergClaims(Claims):
    """Three jobs."""

    form = "iceberg claims"
    kind = IcebergLake


# Names without those of the forms on Delta tables, so that an expression for one of them does not select these.
FORMS = {
    "queries": (IcebergSink, 3),
    "columns": (IcebergDecoded, 3),
    "agents": (IcebergFleet, 2),
    "jobs": (IcebergClaims, 2),
}


@pytest.fixture
def torment(cluster: Cluster, tmp_path: Path, topic: MakeTopic, request: pytest.FixtureRequest) -> Iterator[Torment]:
    """Topics of a form, and agents that are gone when the test ends."""
    name, seed = request.param
    form, partitions = FORMS[name]
    topics = [topic(f"t{number}", partitions=partitions, replication=3) for number in range(12 // partitions)]
    with form(cluster, tmp_path, topics, partitions, seed) as made:
        yield made


@pytest.mark.parametrize(
    "torment", [pytest.param((name, seed), id=f"{name}-{seed}") for name in FORMS for seed in SEEDS], indirect=True
)
def test_every_record_is_in_iceberg_once_whatever_is_killed(torment: Torment) -> None:
    """The catalog decides which of two writers commits, also if one of them is killed, stopped or late."""
    found = torment.run()
    assert found.ok, f"seed {torment.seed}: {found}"
