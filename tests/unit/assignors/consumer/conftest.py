"""A cluster for the cases that are run on two kinds of consumer."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS

_UNAUTHORIZED = 29


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    """A topic of three partitions with records, and one that no client may read."""
    with MockCluster() as made:
        made.wait_for_members(50)
        made.create("t", [1, 2, 3])
        made.create("secret", [1])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers, "log_level": 0})
        for number in range(RECORDS * 3):
            producer.produce("t", str(number // 3).encode(), partition=number % 3)
        assert producer.flush(20) == 0
        made.refuse("secret", _UNAUTHORIZED)
        yield made
