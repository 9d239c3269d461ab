"""Commits of a consumer whose partitions the program assigns, which brokers refuse for a while."""

from typing import Final

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition

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


def test_an_earlier_offset_is_committed_after_a_call_that_was_refused_in_part(mock: MockCluster) -> None:
    """The group then has the offset of the partition that exists; the program goes back, and would lose its records."""
    exists, missing = ("t", 0), ("t", 99)
    config = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "in-part", "enable.auto.commit": False}
    with GroupConsumer({**config, "log_level": 0, "enable.auto.offset.store": False}) as one:
        one.assign([TopicPartition(*exists, 0), TopicPartition(*missing, 0)])

        def commit(at: int) -> int:
            one.store_offsets(offsets=[TopicPartition(*exists, at)])
            one.commit(asynchronous=False)
            return one.committed([TopicPartition(*exists)], 10)[0].offset

        assert commit(5) == 5
        one.store_offsets(offsets=[TopicPartition(*missing, 1)])
        with pytest.raises(KafkaException, match="Unknown topic or partition"):
            commit(7)
        one.store_offsets(offsets=[TopicPartition(*missing, OFFSET_INVALID)])
        assert commit(5) == 5
