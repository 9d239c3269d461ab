"""A program that polls later than max.poll.interval.ms."""

from confluent_kafka import KafkaError

from producer.testing import MockCluster
from tests.unit.assignors.conftest import consumer
from tests.waiting import wait_until


def test_a_program_that_polls_too_late_gets_one_error(mock: MockCluster) -> None:
    """As a bare consumer's program does: it may restart, or skip the work whose partitions it has lost."""
    one = consumer(mock)
    one.subscribe(["t"])
    wait_until(lambda: one.poll(0.1))
    one._ahead.idle_s()  # notes the record taken, as the member's thread does at any time
    one._ahead.polled_at -= 400
    one._ahead.interrupt()  # as the loss of the partitions does
    assert (late := one.poll(0)) is not None
    assert (error := late.error()) is not None
    assert error.code() == KafkaError._MAX_POLL_EXCEEDED
    assert "300000ms" in error.str()
    assert (record := one.poll(20)) is not None
    assert record.error() is None
    one.close()
