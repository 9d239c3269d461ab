"""A second signal comes while `consume` handles the first one: records that left librdkafka arrive all the same."""

import copy
import itertools
import signal
import sys
import time
from types import FrameType
from typing import Final

import pytest
from confluent_kafka import Message, TopicPartition

from assignors import GroupConsumer
from assignors.consumer import read_ahead, record_steps, records_in_hand
from producer.testing import MockCluster
from tests.records import offsets
from tests.records import read as read_without_signals
from tests.unit.assignors.conftest import RECORDS, consumer
from tests.unit.assignors.consumer.alarms import handling_alarms
from tests.unit.assignors.consumer.interruption_points import Interrupter, Interruption

ALL: Final = 3 * RECORDS
SIZE: Final = 40
ALARM_S: Final = 0.01  # within the wait for the rest of the last list
# Those in loops over records.
SPARED: Final = frozenset({copy.__file__, read_ahead.__file__, records_in_hand.__file__})


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [1, 1000], ids=["waiting", "reading ahead"])
def test_a_second_signal_at_any_point_loses_and_doubles_no_record(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    """The first one comes in a call whose records confluent-kafka drops, or when a part of the list is here."""
    monkeypatch.setattr(record_steps, "_READ_AHEAD", 1)
    monkeypatch.setattr(record_steps, "_READ_AHEAD_BATCHES", ahead)
    interrupter = Interrupter(-1, SPARED)
    first = 0

    def interrupt(_: int, frame: FrameType | None) -> None:
        nonlocal first
        within: list[FrameType] = []
        while frame is not None and frame.f_code is not GroupConsumer.consume.__code__:
            within.append(frame)
            frame = frame.f_back
        if frame is not None:  # else the records are the program's to lose
            first += 1
            interrupter.begin(within)
            raise Interruption

    with handling_alarms(interrupt), consumer(mock) as one:
        one.subscribe(["t"])
        for number in itertools.count():
            interrupter, before = Interrupter(number, SPARED), first
            found = read(one)
            assert offsets(found) == {n: list(range(RECORDS)) for n in range(3)}, (number, interrupter.raised_in)
            if first > before and not interrupter.raised_in:
                break
            for partition in range(3):
                one.seek(TopicPartition("t", partition, 0))
    assert number > 30


def test_a_second_signal_in_a_step_leaves_the_rest_to_the_next_one(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler of the first one called a function in Python to request the next step, and a second one came there.

    The next `poll` took records read ahead, before those of an interrupted call.
    """
    with consumer(mock) as one:
        one.subscribe(["t"])
        parts = one._kafka_azimuth

        def interrupt() -> None:
            interrupter.begin([sys._getframe(1)])
            raise Interruption

        for number in itertools.count():
            interrupter = Interrupter(number, frozenset())
            parts.ahead.interrupted = True
            with monkeypatch.context() as patched:
                patched.setattr(parts.fetching, "redeliver_left", interrupt)
                try:
                    parts.steps._serve_interruption(0.0)
                except Interruption:
                    sys.settrace(None)
                    sys.setprofile(None)
            assert parts.ahead.interrupted, interrupter.raised_in
            if not interrupter.raised_in:
                break


def test_a_call_that_has_records_takes_none_before_those_of_an_interrupted_one(mock: MockCluster) -> None:
    """Two threads consume; the main one's second signal leaves its records to the other, in the middle of a call."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        parts = one._kafka_azimuth
        had = one.consume(5, 10)
        left = one.consume(5, 10)
        parts.ahead.interrupted = True
        parts.left.append(left)
        lists: list[list[Message]] = []
        parts.steps.consume(lists.append, len(had), len(had) + 5, time.monotonic() + 10)
        found = offsets([*had, *itertools.chain(*lists)])
        assert found == {n: list(range(len(values))) for n, values in found.items()}
        assert not parts.left


def test_the_records_of_a_call_come_again_from_the_first_one_on(mock: MockCluster) -> None:
    """A second signal comes while a step handles the first one.

    The list that the step fetched is left before the earlier one, which the call took from the records read ahead.
    """
    with consumer(mock) as one:
        one.subscribe(["t"])
        parts = one._kafka_azimuth
        earlier = one.consume(5, 10)
        later = one.consume(5, 10)
        parts.ahead.interrupted = True
        parts.left.extend((later, earlier))
        assert offsets(read_without_signals(one, ALL)) == {n: list(range(RECORDS)) for n in range(3)}


def read(one: GroupConsumer) -> list[Message]:
    """Read all records, with a signal while the last list is incomplete."""
    found: list[Message] = []
    until = time.monotonic() + 20
    after_s = ALARM_S
    while len(found) < ALL and time.monotonic() < until:
        try:
            signal.setitimer(signal.ITIMER_REAL, after_s if len(found) >= ALL - SIZE else 0)
            found += one.consume(SIZE, 0.05)
        except Interruption:
            after_s = 0
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            sys.settrace(None)
            sys.setprofile(None)
    return found
