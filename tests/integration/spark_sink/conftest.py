"""Topics and a Spark session for the tests of this folder."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from spark_sink import DeltaExactlyOnceSink, IcebergExactlyOnceSink, KafkaGroupSource
from spark_sink.demo.cluster import Cluster
from spark_sink.fetch import range_reader
from tests.integration.spark_sink.small_servers import small_aws

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def admin(cluster: Cluster) -> AdminClient:
    """An admin client of the shared cluster."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


@pytest.fixture
def topic(admin: AdminClient, request: pytest.FixtureRequest) -> Iterator[MakeTopic]:
    """Make topics with names of this test's own: `topic("flights", partitions=3, **config)` returns the name."""
    made: list[str] = []
    prefix = f"{request.node.name[:40]}-{uuid.uuid4().hex[:6]}".replace("[", "-").replace("]", "")

    def make(name: str, partitions: int = 1, replication: int = 1, config: Mapping[str, str] | None = None) -> str:
        full = f"{prefix}.{name}"
        admin.create_topics([NewTopic(full, partitions, replication, config=dict(config or {}))])[full].result(30)
        made.append(full)
        return full

    yield make
    for done in admin.delete_topics(made).values() if made else ():
        done.result(30)


@pytest.fixture
def producer(cluster: Cluster) -> Producer:
    """A producer of the shared cluster; flush before you read."""
    return Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 1})


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a module, with the source and the sinks."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    for source in (KafkaGroupSource, DeltaExactlyOnceSink, IcebergExactlyOnceSink):
        session.dataSource.register(source)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A small AWS with one bucket."""
    with small_aws(tmp_path_factory.mktemp("aws") / "log") as address:
        yield address


@pytest.fixture
def no_consumer_is_left() -> Iterator[None]:
    """Close the consumers of the test's tasks: they outlive tasks by design, but not tests."""
    yield
    close_idle_consumers()


def close_idle_consumers() -> None:
    """Close the consumers that tasks of this process have left for the next ones."""
    while range_reader._idle:
        range_reader._idle.popitem()[1].close()
