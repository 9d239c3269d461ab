"""Ctrl-C at each step of a call: the program gets each record once, and can go on or close."""

import contextlib
import functools
import itertools
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from assignors import GroupConsumer
from assignors.consumer.consumer_parts import ConsumerParts
from assignors.consumer.one_thread_at_a_time import CallGate
from assignors.consumer.read_ahead import ReadAhead
from producer.testing import MockCluster
from tests.records import offsets, read
from tests.unit.assignors.conftest import RECORDS, consumer
from tests.unit.assignors.consumer.alarms import handling_alarms, interrupt

# A generator that is dropped ends in such a step, too, and the interpreter only reports what is raised there.
pytestmark = [pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"), pytest.mark.long]


def interrupted(call: Callable[[], Any], step: int) -> tuple[Any, bool]:
    """Run a call, and raise KeyboardInterrupt where the interpreter checks for signals for the nth time.

    It checks at the start of a function and after the call of a function in C, whose value is then lost.

    Returns:
        What the call returns, and whether it has fewer steps.
    """
    steps = itertools.count()

    def look(_frame: FrameType, event: str, _: object) -> None:
        if event in {"call", "c_return"} and next(steps) == step:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        found = call()
    finally:
        sys.setprofile(None)
    return found, next(steps) <= step


def test_an_interrupt_at_any_step_of_joining_batches_keeps_them() -> None:
    """They are out of `ahead` for a moment."""
    for step in itertools.count():
        ahead, ended = ReadAhead(), False
        ahead.hold_batches([[Message(topic="t", partition=0, offset=n)] for n in range(3)], 1)
        with contextlib.suppress(KeyboardInterrupt):
            _, ended = interrupted(ahead.join_batches, step)
        ahead.join_batches()
        assert [one.offset() for one in ahead.records] == [0, 1, 2]
        if ended:
            break
    assert step > 5


@pytest.mark.parametrize("busy", [False, True], ids=["free", "taken"])
def test_an_interrupt_at_any_step_leaves_the_gate_open(busy: bool) -> None:  # noqa: FBT001 -- a case
    """Else the next call would wait for ever, and so would close()."""
    for step in itertools.count():
        gate, inside, left = CallGate(), threading.Event(), threading.Event()

        def take_turn(gate: CallGate = gate) -> None:
            with gate.turn():
                pass

        other = threading.Thread(target=_hold, args=(gate, inside, left))
        if busy:
            other.start()
            assert inside.wait(10)
            threading.Timer(0.01, left.set).start()
        ended = False
        with contextlib.suppress(KeyboardInterrupt):
            _, ended = interrupted(take_turn, step)
        if busy:
            other.join()
        assert _free(gate)
        assert not gate.waited_for
        if ended:
            break
    assert step > 5


def _hold(gate: CallGate, inside: threading.Event, left: threading.Event) -> None:
    with gate.turn():
        inside.set()
        left.wait(10)


def _free(gate: CallGate) -> bool:
    """Whether another thread enters at once."""
    entered = threading.Event()

    def enter() -> None:
        with gate.turn():
            entered.set()

    threading.Thread(target=enter, daemon=True).start()
    return entered.wait(2)


def _poll(one: GroupConsumer) -> list[Message]:
    return [message for message in [one.poll(5)] if message is not None]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(_poll, id="poll"),
        pytest.param(lambda one: one.consume(20, 5), id="consume"),
        pytest.param(lambda one: one.consume(2_000, 0.05), id="consume more than is read ahead"),
    ],
)
def test_an_interrupt_at_any_step_loses_no_record_and_doubles_none(
    mock: MockCluster, call: Callable[[GroupConsumer], list[Message]]
) -> None:
    """Before, during and after the fetch: the records of the call that raises come again."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        found = read(one, 10)
        for step in itertools.count():
            one._kafka_azimuth.fetching.redeliver(
                list(one._kafka_azimuth.fetching.ahead.records)
            )  # the call fetches, each time
            with contextlib.suppress(KeyboardInterrupt):
                taken, ended = interrupted(functools.partial(call, one), step)
                found += taken
                if ended:
                    break
        assert step > 20
        found += read(one, 3 * RECORDS - len(found))
        assert one.poll(0.1) is None
    assert offsets(found) == {n: list(range(RECORDS)) for n in range(3)}


@pytest.mark.parametrize("most", [1, 2], ids=["poll", "consume"])
def test_an_interrupt_while_callbacks_are_asked_for_loses_no_record(mock: MockCluster, most: int) -> None:
    """The client is asked for them with records ahead, and returns later ones, which must not come first."""
    with consumer(mock, stats_cb=lambda _: None) as one:
        one.subscribe(["t"])
        found = read(one, 10)
        for step in itertools.count():
            fetching = one._kafka_azimuth.fetching
            fetching.redeliver(fetching.ahead.held())
            if most == 1:
                fetching.read_ahead(3, (5.0,), one.ownership)
            else:
                fetching.ahead.hold_batches([fetching.take(most, (5.0,), one.ownership)], most)
            assert fetching.ahead.left()
            one._kafka_azimuth.steps._listened_at = 0.0
            fetching.ahead.interrupt()
            call: Any = functools.partial(one.consume, most, 5) if most > 1 else functools.partial(one.poll, 5)
            with contextlib.suppress(KeyboardInterrupt):
                taken, ended = interrupted(call, step)
                found += taken if most > 1 else [taken]
                if ended:
                    break
        assert step > 40
        found += read(one, 3 * RECORDS - len(found))
        assert one.poll(0.1) is None
    assert offsets(found) == {n: list(range(RECORDS)) for n in range(3)}


def test_records_of_an_interrupted_call_return_within_the_gate(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client must not change while another thread's step uses it, nor under a quick step that is armed."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        one._kafka_azimuth.fetching.ahead.hold(read(one, 10))
        one._kafka_azimuth.fetching.ahead.interrupted = False
        one._kafka_azimuth.gate.readiness.state = 1
        states: list[tuple[bool, int]] = []
        redeliver_left = one._kafka_azimuth.fetching.redeliver_left

        def look() -> None:
            states.append((one._kafka_azimuth.gate.lock._is_owned(), one._kafka_azimuth.gate.readiness.state))  # type: ignore[attr-defined]  # of threading.RLock
            redeliver_left()

        monkeypatch.setattr(one._kafka_azimuth.fetching, "redeliver_left", look)
        monkeypatch.setattr(ConsumerParts, "until", interrupt)
        with pytest.raises(KeyboardInterrupt):
            one.consume(3 * RECORDS, 1)
        assert states == [(True, 0)]


def test_a_second_interrupt_while_records_return_loses_none(mock: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call waits there for a step or a callback of another thread, so a user presses Ctrl-C again."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        found = read(one, 10)
        while not one._kafka_azimuth.fetching.ahead.left() or one._kafka_azimuth.fetching.ahead.interrupted:
            found += _poll(one)
        with monkeypatch.context() as interrupted_twice:
            interrupted_twice.setattr(ConsumerParts, "until", interrupt)
            interrupted_twice.setattr(one._kafka_azimuth.gate, "turn", interrupt)
            with pytest.raises(KeyboardInterrupt):
                one.consume(3 * RECORDS, 1)
        reached = {n: len(of) for n, of in offsets(found).items()}
        assert {at.partition: at.offset for at in one.position([TopicPartition("t", n) for n in reached])} == reached
        found += read(one, 3 * RECORDS - len(found))
        assert one.poll(0.1) is None
    assert offsets(found) == {n: list(range(RECORDS)) for n in range(3)}


@pytest.mark.parametrize("most", [1, 70, 500], ids=["poll", "batches", "consume"])
def test_a_signal_while_librdkafka_collects_records_loses_none(mock: MockCluster, most: int) -> None:
    """confluent-kafka drops the records of a call during which a handler raises, and close() would commit them."""
    with consumer(mock) as one, handling_alarms(interrupt):
        one.subscribe(["t"])
        read(one, 3 * RECORDS)
        dropped = 0
        for _ in range(6):
            for number in range(3):
                one.seek(TopicPartition("t", number, 0))
            found: list[Message] = []
            client = one._kafka_azimuth.fetching._consumer
            slow = _Slow(client)
            one._kafka_azimuth.fetching._consumer = slow  # type: ignore[assignment]  # stands in for the client
            try:
                found += _poll(one) if most == 1 else one.consume(most, 5)
            except KeyboardInterrupt:
                dropped += slow.dropped
            finally:
                one._kafka_azimuth.fetching._consumer = client
            found += read(one, 3 * RECORDS - len(found))
            assert offsets(found) == {n: list(range(RECORDS)) for n in range(3)}
        assert dropped


class _Slow:
    """A client that collects for a while, and gets a signal meanwhile."""

    def __init__(self, client: Consumer) -> None:
        self._client = client
        self.dropped = 0

    def consume(self, most: int, _timeout: float) -> list[Message]:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        before = self._positions()
        try:
            return self._client.consume(most + 1000, 0.3)[:most]  # longer than a fetch waits
        finally:
            self.dropped += before != self._positions()

    def _positions(self) -> list[int]:
        return [one.offset for one in self._client.position(self._client.assignment())]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)
