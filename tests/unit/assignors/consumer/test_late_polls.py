"""A program that polls later than max.poll.interval.ms."""

import threading
import time

from confluent_kafka import KafkaError

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.conftest import consumer
from tests.waiting import wait_until


def test_a_program_that_polls_too_late_gets_one_error(mock: MockCluster) -> None:
    """As a bare consumer's program does: it may restart, or skip the work whose partitions it has lost."""
    one = consumer(mock)
    one.subscribe(["t"])
    wait_until(lambda: one.poll(0.1))
    one._kafka_azimuth.ahead.idle_s()  # notes the record taken, as the member's thread does at any time
    one._kafka_azimuth.ahead.polled_at -= 400
    one._kafka_azimuth.ahead.interrupt()  # as the loss of the partitions does
    assert (late := one.poll(0)) is not None
    assert (error := late.error()) is not None
    assert error.code() == KafkaError._MAX_POLL_EXCEEDED
    assert "300000ms" in error.str()
    assert (record := one.poll(20)) is not None
    assert record.error() is None
    one.close()


def test_a_late_program_of_a_broker_assigned_group_hears_of_one_loss(mock: MockCluster) -> None:
    """Librdkafka has left the group by then, so what it still lists as assigned must not be announced again."""
    told: list[str] = []
    config = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "late", "group.protocol": "consumer"}
    with GroupConsumer({**config, "max.poll.interval.ms": "1500.0", "log_level": 0}) as one:
        one.subscribe(
            ["t"],
            on_assign=lambda *_: told.append("assign"),
            on_revoke=lambda *_: told.append("revoke"),
            on_lost=lambda *_: told.append("lost"),
        )
        wait_until(lambda: one.poll(0.1) is None and told)
        begun = time.monotonic()
        while time.monotonic() < begun + 3:  # the program works
            threading.Event().wait(0.1)
        wait_until(lambda: one.poll(0.1) is None and told.count("assign") == 2)
        until = time.monotonic() + 1
        while time.monotonic() < until:
            one.poll(0.1)
    assert told == ["assign", "lost", "assign", "revoke"]
