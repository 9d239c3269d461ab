"""Seeks that come before a broker has answered where a partition without a committed offset begins.

Librdkafka asks for that offset itself, unless it is known. If a seek comes before the answer, it asks again half a
second later and continues at what that says: records came twice, or were left out.
"""

import time
from collections.abc import Callable
from typing import Final

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Message, Producer, TopicPartition

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.records import offsets
from tests.unit.assignors.conftest import RECORDS, consumer

ROUND_TRIP_MS: Final = 50
ASKED_AGAIN_S: Final = 1.0  # librdkafka asks again after half a second
SOUGHT: Final = 20
SOUGHT_ONCE: Final = {number: list(range(SOUGHT, RECORDS)) for number in range(3)}


def _slow(mock: MockCluster) -> None:
    for broker in mock.racks:
        mock.delay(broker, ROUND_TRIP_MS)


def _records(one: GroupConsumer) -> dict[int, list[int]]:
    """What comes before and after the moment at which librdkafka would ask again."""
    until = time.monotonic() + ASKED_AGAIN_S + 20 * ROUND_TRIP_MS / 1000
    found = []
    while time.monotonic() < until:
        found += one.consume(1000, 0.05)
    assert not [message for message in found if message.error()]
    return offsets(found)


def _assigned(one: GroupConsumer) -> None:
    """Poll until there is an assignment, and no longer."""
    one.subscribe(["t"])
    until = time.monotonic() + 20
    while not one.assignment() and time.monotonic() < until:
        assert one.poll(0.0) is None


def _by_hand(at: int) -> Callable[[GroupConsumer], None]:
    def begin(one: GroupConsumer) -> None:
        one.assign([TopicPartition("t", number, at) for number in range(3)])

    return begin


BEGINS: Final = {
    "a member": _assigned,
    "assigned at the beginning": _by_hand(OFFSET_BEGINNING),
    "assigned at the end": _by_hand(OFFSET_END),
}


@pytest.mark.parametrize(
    "begin",
    [pytest.param(one, id=name, marks=() if name == "a member" else pytest.mark.long) for name, one in BEGINS.items()],
)
@pytest.mark.parametrize("reset", ["earliest", pytest.param("latest", marks=pytest.mark.long)])
def test_a_seek_right_after_the_assignment_is_not_undone(
    mock: MockCluster, reset: str, begin: Callable[[GroupConsumer], None]
) -> None:
    """Each partition continues at the sought offset, once."""
    _slow(mock)
    with consumer(mock, **{"auto.offset.reset": reset}) as one:
        begin(one)
        for number in range(3):
            one.seek(TopicPartition("t", number, SOUGHT))
        assert _records(one) == SOUGHT_ONCE


@pytest.mark.long
@pytest.mark.parametrize("first", [OFFSET_BEGINNING, OFFSET_END], ids=["beginning", "end"])
def test_the_second_of_two_seeks_counts(mock: MockCluster, first: int) -> None:
    """Also if the first one, to an offset that a broker must say, has no answer yet."""
    _slow(mock)
    with consumer(mock) as one:
        _assigned(one)
        for at in (first, SOUGHT):
            for number in range(3):
                one.seek(TopicPartition("t", number, at))
        assert _records(one) == SOUGHT_ONCE


def test_many_early_seeks_wait_for_one_answer(mock: MockCluster) -> None:
    """Seeks in each partition in turn took a round trip each."""
    mock.create("many", [1] * 40)
    _slow(mock)
    with consumer(mock) as one:
        one.assign([TopicPartition("many", number, OFFSET_BEGINNING) for number in range(40)])
        for number in range(40):
            one.seek(TopicPartition("many", number, OFFSET_END))
        begun = time.monotonic()
        for number in range(40):
            one.seek(TopicPartition("many", number, 0))
        assert time.monotonic() - begun < 40 * ROUND_TRIP_MS / 1000 / 2


@pytest.mark.slow
@pytest.mark.parametrize("earlier", [True, False], ids=["after another seek", "alone"])
def test_a_seek_in_a_partition_that_had_no_leader_is_not_undone(
    mock: MockCluster,
    earlier: bool,  # noqa: FBT001 -- a case
) -> None:
    """Librdkafka asks some time after there is a leader: later than another seek, or while this one waits."""
    late = range(1, 13)
    led = [1, *(2 for _ in late)]
    mock.create("u", led)
    producer = Producer({"bootstrap.servers": mock.bootstrap_servers, "log_level": 0})
    for number in range(len(led) * RECORDS):
        producer.produce("u", str(number), partition=number % len(led))
    assert producer.flush(20) == 0
    mock.lead("u", [1, *(None for _ in late)])
    with consumer(mock) as one:
        one.assign([TopicPartition("t", 1, OFFSET_END)])  # so it is connected to broker 2
        assert one.poll(0.5) is None
        one.incremental_assign([TopicPartition("u", number, OFFSET_BEGINNING) for number in range(len(led))])
        if earlier:
            for at in (OFFSET_END, SOUGHT):
                one.seek(TopicPartition("u", 0, at))
        mock.delay(2, 4 * ROUND_TRIP_MS)
        mock.lead("u", led)
        found: dict[int, list[int]] = {}
        for number in late:
            for messages in (one.consume(1000, 0.05), one.consume(1000, 0.05)):
                _add(found, messages)
            one.seek(TopicPartition("u", number, SOUGHT))
            found[number] = []
        until = time.monotonic() + ASKED_AGAIN_S + 1
        while time.monotonic() < until:
            _add(found, one.consume(1000, 0.05))
    assert {number: found[number] for number in late} == {number: list(range(SOUGHT, RECORDS)) for number in late}


def _add(found: dict[int, list[int]], messages: list[Message]) -> None:
    for number, those in offsets(messages).items():
        found.setdefault(number, []).extend(those)
