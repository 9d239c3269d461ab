"""Errors of the callbacks in the configuration reach the program, and cost no record."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException, Message

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS, consumer
from tests.waiting import wait_until

_TOTAL = RECORDS * 3


class _Statistics:
    """A `stats_cb` that raises until its error is removed, or once."""

    def __init__(self, error: BaseException, *, once: bool) -> None:
        self.error: BaseException | None = error
        self.once = once

    def __call__(self, _: str) -> None:
        if (error := self.error) is not None:
            self.error = None if self.once else error
            raise error


def _failing(
    mock: MockCluster, error: BaseException, *, once: bool, milliseconds: int = 1
) -> tuple[GroupConsumer, _Statistics]:
    failing = _Statistics(error, once=once)
    more: dict[str, Any] = {"statistics.interval.ms": milliseconds, "stats_cb": failing}
    one = consumer(mock, **more)
    one.subscribe(["t"])
    return one, failing


def _poll_until_raised(one: GroupConsumer) -> None:
    for _ in range(_TOTAL + 1):
        one.poll(20)


@pytest.mark.parametrize(("size", "milliseconds"), [(1, 10), (7, 5), (_TOTAL, 1)])
def test_records_of_a_call_in_which_a_callback_raises_are_delivered_once(
    mock: MockCluster, size: int, milliseconds: int
) -> None:
    """confluent-kafka drops the records of such a call, and its position is after them: they would be lost.

    Short lists need many calls, of which on a busy machine a report each millisecond would end nearly all.
    """
    one, failing = _failing(mock, ValueError("of the program"), once=False, milliseconds=milliseconds)
    found: list[Message] = []
    raised = 0

    def read() -> bool:
        nonlocal raised
        try:
            found.extend(one.consume(size, timeout=0.1))
        except ValueError:
            raised += 1
        return len(found) >= _TOTAL

    wait_until(read, 20)
    failing.error = None
    for _ in range(2):  # the last error, then the end of the records
        read()
    one.close()
    assert raised
    assert sorted({(record.partition(), record.offset()) for record in found}) == [
        (partition, offset) for partition in range(3) for offset in range(RECORDS)
    ]
    assert len(found) == _TOTAL


def test_close_calls_each_on_commit_in_spite_of_errors(mock: MockCluster) -> None:
    """A program counts its commits there; the first error comes out of close()."""
    called: list[object] = []

    def fail(*answer: object) -> None:
        called.append(answer)
        raise LookupError(len(called))

    one = consumer(mock, on_commit=fail)
    one.subscribe(["t"])
    wait_until(lambda: bool(one.consume(5, 0.3)), 20)
    for _ in range(5):
        one.commit()
    with pytest.raises(LookupError, match="1"):
        one.close()
    assert len(called) == 5


@pytest.mark.parametrize("error", [KafkaException("of the program"), SystemExit(3)], ids=["kafka", "exit"])
def test_poll_raises_each_error_of_a_callback(mock: MockCluster, error: BaseException) -> None:
    """An `error_cb` often raises a KafkaException to end the program: it is not an error of the client."""
    one, _ = _failing(mock, error, once=True)
    client = one._kafka_azimuth.fetching.client
    with pytest.raises(type(error)) as raised:
        _poll_until_raised(one)
    assert raised.value is error
    assert one._kafka_azimuth.fetching.client is client
    one.close()


def test_on_commit_may_close_the_consumer_that_closes(mock: MockCluster) -> None:
    """A program that ends after its first failed commit does this; the outer call has nothing left to do."""
    called: list[object] = []
    made: list[GroupConsumer] = []

    def end(*answer: object) -> None:
        called.append(answer)
        made[0].close()

    made.append(consumer(mock, on_commit=end))
    made[0].subscribe(["t"])
    wait_until(lambda: bool(made[0].consume(5, 0.3)), 20)
    made[0].commit()
    made[0].close()
    assert len(called) == 1


@pytest.mark.parametrize("call", [lambda one: one.list_topics("t", timeout=5), lambda one: one.consume(1, 0)])
def test_callbacks_of_the_configuration_may_call_the_consumer(mock: MockCluster, call: Callable[[Any], object]) -> None:
    """In librdkafka's call such a callback would end the process as soon as the next one came."""
    done: list[object] = []

    def report(_: str) -> None:
        if len(done) <= 5:  # not in close()
            done.append(call(one))

    more: dict[str, Any] = {"statistics.interval.ms": 5, "stats_cb": report}
    one = consumer(mock, **more)
    one.subscribe(["t"])
    wait_until(lambda: one.consume(1, 0.3) is not None and len(done) > 5)
    one.close()
