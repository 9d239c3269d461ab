"""The end of a consumer whose brokers are gone."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.records import read
from tests.unit.assignors.conftest import RECORDS, consumer


def _broker_assigned(mock: MockCluster, **more: Any) -> GroupConsumer:
    config = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    return GroupConsumer({**config, "group.protocol": "consumer", "log_level": 0, **more})


@pytest.mark.slow
@pytest.mark.parametrize("make", [consumer, _broker_assigned], ids=["classic", "consumer"])
def test_closing_without_brokers_takes_seconds(mock: MockCluster, make: Callable[..., GroupConsumer]) -> None:
    """Its commits cannot be answered: automatic ones, and those of on_revoke, share one time limit."""
    refused: list[Exception] = []

    def revoked(one: GroupConsumer, _: object) -> None:
        try:
            one.commit(asynchronous=False)
        except KafkaException as error:
            refused.append(error)

    one = make(mock, **{"enable.auto.commit": True})
    one.subscribe(["t"], on_revoke=revoked)
    read(one, 3 * RECORDS)
    for broker in mock.racks:
        mock.down(broker)
    begun = time.monotonic()
    one.close()
    assert time.monotonic() - begun < 35  # 40 s where each commit had its own limit
    assert refused


@pytest.mark.slow
@pytest.mark.parametrize("auto", [True, False])
def test_closing_without_brokers_and_without_a_group_takes_seconds(mock: MockCluster, auto: bool) -> None:  # noqa: FBT001 -- a case
    """Librdkafka kept a commit for 45 s, and close() waited for that."""
    one = consumer(mock, **{"enable.auto.commit": auto, "session.timeout.ms": 45_000})
    one.assign([TopicPartition("t", number, 0) for number in range(3)])
    read(one, 3 * RECORDS)
    for broker in mock.racks:
        mock.down(broker)
    one.commit()
    begun = time.monotonic()
    one.close()
    assert time.monotonic() - begun < 30
