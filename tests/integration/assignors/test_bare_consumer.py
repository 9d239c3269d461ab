"""The cases of the bare consumer and of GroupConsumer once more, on real brokers."""

from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stub has no __all__

from spark_sink.demo.cluster import Cluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer import (
    test_bare_broker_assigned,
    test_bare_choices,
    test_bare_commits,
    test_bare_seeks,
)
from tests.unit.assignors.consumer.bare_bench import Case, check

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CASES: Final[dict[str, Case]] = (
    test_bare_broker_assigned.CASES
    | test_bare_seeks.CASES
    | {body.__name__: body for module in (test_bare_choices, test_bare_commits) for body in module.CASES}
)
LEFT_OUT: Final = {
    "errors_of_topics_are_messages": "the embedded brokers refuse no topic",
    "a_name_that_no_topic_can_have": "beside such a name the bare client reads nothing from real brokers",
}


@pytest.fixture(scope="module")
def filled(cluster: Cluster) -> Iterator[Cluster]:
    """The topic of the cases, with records that are numbered."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic("t", num_partitions=3, replication_factor=3)])["t"].result(30)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for number in range(RECORDS * 3):
        producer.produce("t", str(number // 3).encode(), partition=number % 3)
    assert producer.flush(30) == 0
    yield cluster
    admin.delete_topics(["t"])["t"].result(30)


@pytest.mark.parametrize("name", sorted(CASES.keys() - LEFT_OUT.keys()))
def test_both_consumers_do_the_same(filled: Cluster, name: str) -> None:
    """A program changes its class, and nothing else."""
    check(CASES[name], filled)
