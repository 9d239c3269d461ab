"""The step of `consume` in C: the same records as without it, whatever happens between two calls."""

import copy
import gc
import itertools
import math
import operator
import random
import shutil
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message, Producer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from assignors import GroupConsumer
from assignors.consumer import group_consumer, one_thread_at_a_time, quick_step, quick_step_interpreted, record_steps
from assignors.consumer.consumer_errors import ArgumentError
from assignors.consumer.fetching import Fetching
from assignors.consumer.record_steps import RecordSteps
from producer.testing import MockCluster
from tests.records import offsets, read
from tests.unit.assignors.conftest import RECORDS, consumer, end_client
from tests.unit.assignors.consumer.alarms import handling_alarms

pytestmark = pytest.mark.long

try:
    from assignors.consumer import quick_step_compiled
except ImportError:
    quick_step_compiled = None  # type: ignore[assignment]

ALL = 3 * RECORDS
compiled = pytest.mark.skipif(quick_step_compiled is None, reason="built without a C compiler")


@pytest.fixture(
    params=[pytest.param(quick_step_interpreted, id="interpreted"), pytest.param(quick_step_compiled, id="compiled")]
)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Make consumers with one of the two."""
    module: ModuleType | None = request.param
    if module is None:
        pytest.skip("built without a C compiler")
    monkeypatch.setattr(record_steps, "QuickStep", module.QuickStep)
    monkeypatch.setattr(one_thread_at_a_time, "Readiness", module.Readiness)
    monkeypatch.setattr(record_steps, "_LEAST_BATCH", 1 if module.TAKES_RECORDS else 2)
    return module


def test_the_step_is_compiled_where_there_is_a_compiler() -> None:
    """An install that could have compiled it and did not is slower, without a word."""
    compiler = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0])
    if compiler is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("no C compiler, or no headers of Python's")
    assert quick_step.TAKES_RECORDS


@compiled
@given(st.integers(0, 30), st.integers(1, 9), st.integers(0, 4))
def test_parts_are_the_slices_of_the_list(count: int, length: int, taken: int) -> None:
    """Nothing is lost, doubled or freed twice where references are moved; a copy leaves the rest in place."""
    given_records = [Message(topic="t", partition=0, offset=n) for n in range(count)]
    before = [sys.getrefcount(one) for one in given_records]
    parts = quick_step_compiled.Parts(list(given_records), length)
    wanted = [given_records[at : at + length] for at in range(0, count, length)]
    assert operator.length_hint(parts) == len(wanted)
    first = list(itertools.islice(parts, taken))
    assert operator.length_hint(parts) == len(wanted[taken:])
    assert list(map(id, itertools.chain(*copy.copy(parts)))) == list(map(id, itertools.chain(*wanted[taken:])))
    assert [*first, *parts] == wanted
    assert list(parts) == []
    del first, parts, wanted
    assert [sys.getrefcount(one) for one in given_records] == before


@pytest.fixture
def steps_in_python(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The records that the call had at each of these steps."""
    found: list[int] = []
    step = record_steps.RecordSteps.consume

    def noted(self: RecordSteps, add: Callable[[list[Message]], object], had: int, *more: Any) -> tuple[int, bool]:
        found.append(had)
        return step(self, add, had, *more)

    monkeypatch.setattr(record_steps.RecordSteps, "consume", noted)
    return found


@compiled
@pytest.mark.parametrize("size", [1, 15])
def test_most_calls_need_no_other_step(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, steps_in_python: list[int], size: int
) -> None:
    """A step in Python costs as much as 80 records."""
    monkeypatch.setattr(record_steps, "_READ_AHEAD", 1)
    monkeypatch.setattr(record_steps, "_READ_AHEAD_BATCHES", 1)
    with consumer(mock) as one:
        one.subscribe(["t"])
        assert len(one.consume(15, 20)) == 15  # the first call joins the group
        wait_until_fetched(one)
        one.consume(size, 5)
        steps_in_python.clear()
        found = list(itertools.chain(*(one.consume(size, 5) for _ in range(105 // size))))
        assert len(found) == 105
        assert len(steps_in_python) <= 3


@compiled
@pytest.mark.parametrize("ahead", [1, 60])
def test_calls_that_wait_need_no_other_step(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, steps_in_python: list[int], ahead: int
) -> None:
    """A program that is faster than its brokers waits often, and after a wait a step in Python costs the most."""
    monkeypatch.setattr(record_steps, "_READ_AHEAD_BATCHES", ahead)
    producer = Producer({"bootstrap.servers": mock.bootstrap_servers, "linger.ms": 50})
    with consumer(mock) as one:
        one.subscribe(["t"])
        assert len(read(one, ALL)) == ALL
        steps_in_python.clear()
        for _ in range(6):
            for _ in range(15):
                producer.produce("t", b"later", partition=0)
            later = threading.Timer(0.2, producer.flush)
            later.start()
            assert len(one.consume(15, 5)) == 15
            later.join()
    assert len(steps_in_python) <= 3, steps_in_python


@compiled
@pytest.mark.parametrize("parts", [(5, 10), (10, 5), (5, 5, 5), (20, 10), (40, 5)], ids=str)
def test_the_rest_of_a_list_that_comes_later_needs_no_other_step(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, steps_in_python: list[int], parts: tuple[int, ...]
) -> None:
    """Brokers answer with any number of records: right after a seek nearly each answer ends within a list."""
    monkeypatch.setattr(record_steps, "_READ_AHEAD_BATCHES", 60)
    producer = Producer({"bootstrap.servers": mock.bootstrap_servers, "linger.ms": 50})
    whole = sum(parts) // 15

    def send() -> None:
        for count in parts:
            for _ in range(count):
                producer.produce("t", b"later", partition=0)
            producer.flush()

    with consumer(mock) as one:
        one.subscribe(["t"])
        assert len(read_in_lists(one)) == ALL
        steps_in_python.clear()
        for number in range(4):
            later = threading.Timer(0.2, send)
            later.start()
            found = list(itertools.chain(*(one.consume(15, 5) for _ in range(whole))))
            assert len(found) == whole * 15
            assert [one.offset() for one in found] == [RECORDS + number * whole * 15 + at for at in range(whole * 15)]
            later.join()
    assert len(steps_in_python) <= 3, steps_in_python


def test_the_rest_of_a_list_is_fetched_without_others(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, way: ModuleType, steps_in_python: list[int]
) -> None:
    """Records ahead that are no list keep the steps in Python, until a call finds none."""
    monkeypatch.setattr(record_steps, "_READ_AHEAD_BATCHES", 60)
    ahead: list[int] = []
    monkeypatch.setattr(Fetching, "read_ahead", lambda _, most, *__: ahead.append(most))
    producer = Producer({"bootstrap.servers": mock.bootstrap_servers, "linger.ms": 0})
    with consumer(mock) as one:
        one.subscribe(["t"])
        assert [len(one.consume(20, 20)) for _ in range(7)] == [20] * 7
        for _ in range(10):
            producer.produce("t", b"later", partition=0)
        assert producer.flush(20) == 0
        assert len(one.consume(20, 5)) == 20
    assert any(steps_in_python) == (way is quick_step_interpreted)
    assert not ahead


def wait_until_fetched(one: GroupConsumer) -> None:
    """Go back to the beginning, and wait for all records."""
    read(one, ALL - 15)
    for number in range(3):
        one.seek(TopicPartition("t", number, 0))
    for _ in range(2):
        assert one.consume(15, 5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("way")
def test_other_calls_between_lose_and_double_no_record(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A pause, a seek, a commit, another number or another thread ends what a step in C takes for granted."""
    drawn = random.Random(seed)
    size = drawn.choice([1, 4])
    monkeypatch.setattr(record_steps, "_READ_AHEAD", drawn.choice([1, 500]))
    monkeypatch.setattr(record_steps, "_READ_AHEAD_BATCHES", drawn.choice([1, 20, 1000]))
    with consumer(mock) as one:
        one.subscribe(["t"])
        found: list[Message] = read(one, 1)
        paused = [TopicPartition("t", drawn.randrange(3))]

        def seek() -> None:
            last = found[-1]
            one.seek(TopicPartition("t", last.partition() or 0, (last.offset() or 0) + 1))

        def in_another_thread() -> None:
            other = threading.Thread(target=lambda: found.extend(one.consume(4, 0.1)))
            other.start()
            other.join()

        def poll() -> None:
            found.extend(m for m in [one.poll(0.1)] if m is not None)

        others: list[Callable[[], object]] = [
            seek,
            poll,
            in_another_thread,
            lambda: one.pause(paused),
            lambda: one.resume(paused),
            lambda: one.commit(asynchronous=False),
            lambda: found.extend(one.consume(7, 0.1)),
        ]
        until = time.monotonic() + 60
        while len(found) < ALL:
            assert time.monotonic() < until
            for _ in range(drawn.randrange(4)):
                found += one.consume(size, 0.1)
            drawn.choice(others)()
            one.resume(paused) if len(found) > ALL - 60 else None
        assert not one.consume(4, 0.1)
    got = {key: sorted(values) for key, values in offsets(found).items()}
    assert got == {n: list(range(RECORDS)) for n in range(3)}


@pytest.mark.usefixtures("way")
def test_a_count_that_is_no_whole_number_is_refused_also_when_records_are_ready(mock: MockCluster) -> None:
    """As in the bare client: 15.0 equals 15, and was accepted after a call with 15."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        assert len(one.consume(15, 20)) == 15  # the first call joins the group
        wait_until_fetched(one)
        for _ in range(8):
            with pytest.raises(TypeError):
                one.consume(15.0, 1)  # type: ignore[arg-type]  # a wrong one
            assert len(one.consume(15, 5)) == 15


@pytest.mark.usefixtures("way")
def test_a_timeout_that_is_no_number_is_refused_without_a_wait(mock: MockCluster) -> None:
    """No comparison with NaN is true, so it counted as no limit, and the error came after 2 s."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        assert len(read_in_lists(one)) == ALL
        begin = time.monotonic()
        with pytest.raises(ArgumentError, match="timeout=nan"):
            one.consume(15, math.nan)
        assert time.monotonic() - begin < 0.5


@compiled
@pytest.mark.parametrize("size", [1, 40])
@pytest.mark.parametrize("ahead", [1, 1000], ids=["waiting", "reading ahead"])
def test_a_signal_in_the_step_loses_no_record(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, ahead: int, size: int
) -> None:
    """confluent-kafka drops the records of a call during which a handler raises."""
    monkeypatch.setattr(record_steps, "_READ_AHEAD", 1)
    monkeypatch.setattr(record_steps, "_READ_AHEAD_BATCHES", ahead)
    raised = 0

    def interrupt(_: int, frame: FrameType | None) -> None:
        nonlocal raised
        while frame is not None:  # after the call has returned, the records would be the program's to lose
            if frame.f_code is GroupConsumer.consume.__code__:
                raised += 1
                raise KeyboardInterrupt
            frame = frame.f_back

    with handling_alarms(interrupt), consumer(mock) as one:
        one.subscribe(["t"])
        for number in range(6):
            found = read_with_alarms(one, size, 0.002 * number + 0.001)
            assert offsets(found) == {n: list(range(RECORDS)) for n in range(3)}
            for partition in range(3):
                one.seek(TopicPartition("t", partition, 0))
    assert raised


@pytest.mark.usefixtures("way")
def test_calls_of_a_handler_end_the_wait_in_c(mock: MockCluster) -> None:
    """The wait went on with a client that the call had replaced and closed."""
    handled: list[list[Message]] = []

    def consume_with_an_ended_client(*_: object) -> None:
        end_client(one)
        handled.append(one.consume(15, 0))

    with handling_alarms(consume_with_an_ended_client), consumer(mock) as one:
        one.subscribe(["t"])
        assert len(read_in_lists(one)) == ALL
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        assert not one.consume(15, 1)
    assert handled == [[]]


@pytest.mark.usefixtures("way")
def test_records_of_a_handler_come_once(mock: MockCluster) -> None:
    """A later signal in the same wait gave them back with those that the wait itself might have lost."""
    producer = Producer({"bootstrap.servers": mock.bootstrap_servers, "linger.ms": 50})
    found: list[Message] = []

    def consume_then_interrupt(_: int, __: FrameType | None) -> None:
        if found:
            raise KeyboardInterrupt
        for _ in range(15):
            producer.produce("t", b"later", partition=0)
        assert producer.flush(20) == 0
        found.extend(one.consume(15, 5))
        signal.setitimer(signal.ITIMER_REAL, 0.2)

    with handling_alarms(consume_then_interrupt), consumer(mock) as one:
        one.subscribe(["t"])
        assert len(read_in_lists(one)) == ALL
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            one.consume(15, 10)
        assert len(found) == 15
        assert one.consume(15, 0.5) == []


def test_records_after_a_short_list_come_after_it(mock: MockCluster) -> None:
    """With callbacks a step may fetch a list after one that is short: the rest of that one overwrote it."""
    with consumer(mock, error_cb=lambda _: None) as one:
        ahead = one._kafka_azimuth.ahead
        one.subscribe(["t"])
        assert len(read_in_lists(one)) == ALL
        send(mock, 50)
        found = one.consume(15, 5) + one.consume(15, 5)
        send(mock, 40)
        ahead.interrupted = True
        until = time.monotonic() + 20
        while len(found) < 90 and time.monotonic() < until:
            found += one.consume(15, 0.2)
    assert [m.offset() for m in found] == list(range(RECORDS, RECORDS + 90))


@pytest.mark.parametrize("size", [1, 7, 15, 20])
@pytest.mark.parametrize("have", [0, 5, 10])
@pytest.mark.usefixtures("way")
def test_a_handler_that_consumes_before_the_step_loses_no_record(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, size: int, have: int
) -> None:
    """It armed the step for lists of its size, so that the call lacked a negative number, or got too many."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        assert len(read_in_lists(one)) == ALL
        send(mock, 30 + have)
        found = one.consume(15, 5) + one.consume(15, 5)
        send(mock, 1500)  # more than are read ahead
        handled: list[Message] = []
        calls = [False] * 10_000 + [True]

        def now() -> float:
            if calls.pop():
                handled.extend(one.consume(size, 1))
                handled.extend(one.consume(size, 1))
            return time.monotonic()

        with monkeypatch.context() as patched:
            patched.setattr(group_consumer, "time", SimpleNamespace(monotonic=now))
            until = time.monotonic() + 3
            while len(found) + len(handled) < 1530 + have and time.monotonic() < until:
                found += (got := one.consume(15, 0.1))
                assert len(got) <= 15
    assert handled
    assert sorted(m.offset() or 0 for m in found + handled) == list(range(RECORDS, RECORDS + 1530 + have))


def send(mock: MockCluster, count: int) -> None:
    """Send records to the first partition, and wait until the client may have them."""
    producer = Producer({"bootstrap.servers": mock.bootstrap_servers})
    for _ in range(count):
        producer.produce("t", b"later", partition=0)
    assert producer.flush(20) == 0
    time.sleep(0.5)


def read_in_lists(one: GroupConsumer) -> list[Message]:
    """Read all records with calls for 15."""
    found: list[Message] = []
    until = time.monotonic() + 30
    while len(found) < ALL:
        assert time.monotonic() < until
        found += one.consume(15, 5)
    return found


def read_with_alarms(one: GroupConsumer, size: int, after_s: float) -> list[Message]:
    """Read all records, with a signal a short time after the start of each second call."""
    found: list[Message] = []
    until = time.monotonic() + 60
    for number in itertools.count():
        assert time.monotonic() < until
        try:
            signal.setitimer(signal.ITIMER_REAL, after_s if number % 2 else 0)
            found += one.consume(size, 0.05)
        except KeyboardInterrupt:
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if len(found) >= ALL:
            return found
    raise AssertionError


@compiled
def test_garbage_collected_within_a_cut_may_take_the_next_part() -> None:
    """Python 3.11 collects garbage when a list is made, and runs finalizers and other threads meanwhile."""
    records = [Message(topic="t", partition=0, offset=n) for n in range(10)]
    parts = quick_step_compiled.Parts(list(records), 6)
    rest: list[list[Message]] = []

    def take_the_rest(phase: str, _: object) -> None:
        if phase == "start":
            rest.extend(parts)

    gc.collect()
    gc.disable()
    gc.callbacks.append(take_the_rest)
    try:
        held: list[list[object]] = [[] for _ in range(3000)]  # no free list is left, and a collection is due
        gc.enable()
        first = next(parts)
    finally:
        gc.enable()
        gc.callbacks.remove(take_the_rest)
    del held
    assert [*first, *itertools.chain(*rest)] == records


@compiled
def test_a_cut_list_may_be_read_by_a_debugger() -> None:
    """`gc.get_objects` shows the list whose records have moved."""
    parts = quick_step_compiled.Parts([Message(topic="t", partition=0, offset=n) for n in range(10)], 6)
    next(parts)
    whole = next(one for one in gc.get_referents(parts) if isinstance(one, list))
    assert [one is None for one in whole] == [True] * 6 + [False] * 4
