"""A revocation that one thread handles while another thread polls."""

import threading

import pytest
from confluent_kafka import Message, TopicPartition

from assignors import GroupConsumer
from assignors.consumer.rebalance_events import Kind, Rebalance
from producer.testing import MockCluster
from tests.unit.assignors.conftest import consumer
from tests.waiting import wait_until


@pytest.mark.parametrize("many", [False, True], ids=["poll", "consume"])
def test_no_thread_takes_a_record_while_another_thread_runs_on_revoke(mock: MockCluster, many: bool) -> None:  # noqa: FBT001 -- a case
    """Its offset would be after the offset that the revocation commits, so the next owner would deliver it again."""
    one = consumer(mock)
    taken: list[Message] = []
    during: list[int] = []
    others: list[threading.Thread] = []

    def take() -> None:
        found = one.consume(5, 0.1) if many else [one.poll(0.1)]
        taken.extend(message for message in found if message is not None)

    def on_revoke(_: GroupConsumer, __: list[TopicPartition]) -> None:
        other = threading.Thread(target=take)
        other.start()
        wait_until(lambda: one._kafka_azimuth.gate.waited_for or not other.is_alive())
        others.append(other)
        during.append(len(taken))

    one.subscribe(["t"], on_revoke=lambda *of: None if others else on_revoke(*of))
    wait_until(lambda: one.poll(0.1) is not None and one._kafka_azimuth.ahead.left())
    owned = one.ownership().partitions
    one._kafka_azimuth.membership._rebalances._waiting.append(Rebalance(Kind.REVOKED, owned))
    one._kafka_azimuth.ahead.interrupt()
    one.poll(0)
    others[0].join()
    one.close()
    assert during[0] == 0
