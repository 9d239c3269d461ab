"""Commits of a consumer whose partitions the program assigns, which brokers refuse for a while."""

from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.waiting import wait_until

OFFSET_COMMIT: Final = 8  # Kafka's number of the request


@pytest.mark.parametrize("kind", [Consumer, GroupConsumer], ids=lambda kind: kind.__name__)
def test_close_commits_what_was_refused_before(mock: MockCluster, kind: type[Consumer]) -> None:
    """An automatic commit has its answer after the call that began it, so it counts only then."""
    answers: list[KafkaError | None] = []
    config = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "by-hand", "auto.commit.interval.ms": 100}
    one = kind({**config, "log_level": 0, "on_commit": lambda error, _: answers.append(error)})
    one.assign([TopicPartition("t", 0, 0)])
    wait_until(lambda: one.poll(0.1))
    mock.fail(OFFSET_COMMIT, KafkaError.GROUP_AUTHORIZATION_FAILED)
    wait_until(lambda: one.poll(0.1) is None and any(answers))
    mock.fail(OFFSET_COMMIT, 0)
    [position] = one.position([TopicPartition("t", 0)])
    one.close()
    asks = Consumer(config)
    [committed] = asks.committed([TopicPartition("t", 0)], 10)
    asks.close()
    assert committed.offset == position.offset > 0
