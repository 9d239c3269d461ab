"""The end of a consumer whose brokers are gone."""

import time

import pytest
from confluent_kafka import KafkaException, TopicPartition

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.records import read
from tests.unit.assignors.conftest import RECORDS, consumer


@pytest.mark.slow
def test_closing_without_brokers_takes_seconds(mock: MockCluster) -> None:
    """Its commits cannot be answered: automatic ones, and those of on_revoke, share one time limit."""
    refused: list[Exception] = []

    def revoked(one: GroupConsumer, _: object) -> None:
        try:
            one.commit(asynchronous=False)
        except KafkaException as error:
            refused.append(error)

    one = consumer(mock, **{"enable.auto.commit": True})
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
