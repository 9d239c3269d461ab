"""Callbacks of the configuration: no code in Python runs in librdkafka's call in which they come."""

import _thread
import itertools
import json
import logging
import operator
import random
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, SupportsIndex

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from assignors import GroupConsumer
from assignors.consumer.client_callbacks import ClientCallbacks
from assignors.consumer.consumer_errors import ClosedConsumerError
from assignors.consumer.interruptions import at_once
from producer.testing import MockCluster
from tests.records import offsets, read
from tests.unit.assignors.conftest import RECORDS, consumer
from tests.unit.assignors.consumer.alarms import handling_alarms, interrupt

SIGNALLED = Path(__file__).with_name("signalled_process.py")
EVENTS = {"error_cb": ("e",), "on_commit": (None, ["p"]), "stats_cb": ("{}",), "throttle_cb": ("t",)}


def noting(callbacks: ClientCallbacks, seen: list[Any]) -> dict[str, Any]:
    """What librdkafka's client gets for functions that note their calls; the logger's `log` as one of them."""

    class Logger:
        def log(self, *args: object) -> None:
            seen.append(("logger", args))

    def note(name: str) -> Any:
        return lambda *args: seen.append((name, args))

    found = callbacks.listening({name: note(name) for name in EVENTS} | {"logger": Logger()})
    return {**found, "logger": found["logger"].log}


@pytest.mark.parametrize(("name", "args"), [*EVENTS.items(), ("logger", (20, "%s", "FAC", "client", "text"))])
def test_a_signal_that_came_before_a_callback_raises_after_it(name: str, args: tuple[object, ...]) -> None:
    """One that raises in there costs the record that comes next, which close() then waits for for ever."""
    seen: list[Any] = []
    callbacks = ClientCallbacks()
    function = noting(callbacks, seen)[name]
    returned: list[bool] = []
    with handling_alarms(interrupt), pytest.raises(KeyboardInterrupt):
        at_once((_thread.interrupt_main, signal.SIGALRM), (function, *args), (returned.append, True))
    assert returned
    assert not seen
    callbacks.call()
    assert seen == [(name, args)]


def test_functions_are_called_in_the_order_of_their_events() -> None:
    """As in the bare client; each once, also if one of them raises or makes the other calls."""
    seen: list[Any] = []
    callbacks = ClientCallbacks()
    of_client = noting(callbacks, seen)

    def fail(*_: object) -> None:
        assert not callbacks.call()  # the others, as a call of the consumer in a callback does
        raise LookupError

    of_client["error_cb"](1)
    callbacks.listening({"stats_cb": fail})["stats_cb"](2)
    of_client["on_commit"](3, 4)
    of_client["error_cb"](5)
    with pytest.raises(LookupError):
        callbacks.raise_caught()
    callbacks.raise_caught()
    assert seen == [("error_cb", (1,)), ("on_commit", (3, 4)), ("error_cb", (5,))]


class _Moves(list[Any]):
    """Counts the items that a deletion moves."""

    moved = 0

    def __delitem__(self, at: SupportsIndex | slice) -> None:
        self.moved += len(self) - (at.stop if isinstance(at, slice) else int(at) + 1)
        super().__delitem__(at)


def test_many_events_are_taken_without_moving_the_others() -> None:
    """After a long pause with `debug` one call brings 100,000 lines: to move the rest for each took 10 s."""
    seen: list[Any] = []
    callbacks = ClientCallbacks()
    callbacks.came = moves = _Moves()
    function = noting(callbacks, seen)["on_commit"]
    for number in range(1000):
        function(number, None)
    callbacks.call()
    assert seen == [("on_commit", (number, None)) for number in range(1000)]
    assert moves.moved == 0


@pytest.mark.parametrize("on_commit", [None, 5])
def test_what_is_no_function_is_left_to_librdkafka(on_commit: int | None) -> None:
    """It refuses such a value with an error of its own."""
    config = {"stats_cb": 5, "error_cb": None, "on_commit": on_commit, "client.id": "c"}
    assert ClientCallbacks().listening(config) == config


def test_answers_to_commits_are_noted_for_a_program_without_on_commit_too() -> None:
    """The consumer needs them to know what the group has; the program has no function that must be called in time."""
    callbacks, answers = ClientCallbacks(), []
    callbacks.on_answer = lambda error, partitions: answers.append((error, partitions))
    note: Any = callbacks.listening({})["on_commit"]
    note(None, [])
    callbacks.call()
    assert answers == [(None, [])]
    assert not callbacks.listens


def test_an_interruption_while_an_answer_is_noted_does_not_skip_on_commit() -> None:
    """The program would wait for ever for an answer that has come."""
    seen: list[Any] = []
    callbacks = ClientCallbacks()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    callbacks.on_answer = interrupted
    noting(callbacks, seen)["on_commit"](None, ["p"])
    with pytest.raises(KeyboardInterrupt):
        callbacks.raise_caught()
    assert seen == [("on_commit", (None, ["p"]))]


class _SignalFirst:
    """A client whose next call finds a signal that has come, and callbacks before the records."""

    def __init__(self, client: Consumer) -> None:
        self._client = client
        self.armed = True

    def consume(self, most: int, timeout: float) -> list[Any]:
        """As the client's; the handler of the signal may run in no Python code before a callback."""
        if not self.armed:
            return self._client.consume(most, timeout)
        self.armed = False
        steps = [(_thread.interrupt_main, signal.SIGALRM), (self._client.consume, most, 5.0)]
        return list(itertools.starmap(operator.call, steps))[1]  # type: ignore[no-any-return]  # of the second

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def _statistics(came: threading.Event) -> dict[str, Any]:
    return {"statistics.interval.ms": 1, "stats_cb": lambda _: came.set()}


def _log(came: threading.Event) -> dict[str, Any]:
    class Noting(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            came.set()

    logger = logging.Logger("test")  # noqa: LOG001 -- no part of the tree of loggers
    logger.addHandler(Noting())
    return {"debug": "fetch", "log_level": 7, "logger": logger}


@pytest.mark.parametrize("config", [_statistics, _log], ids=["stats_cb", "logger"])
def test_a_signal_before_a_callback_and_a_record_loses_none(mock: MockCluster, config: Any) -> None:
    """Librdkafka dropped the record after a callback that raised, and close() did not return."""
    came = threading.Event()
    one = consumer(mock, **config(came))
    one.assign([TopicPartition("t", number, 0) for number in range(3)])
    client = one._kafka_azimuth.fetching._consumer
    with handling_alarms(interrupt):
        one._kafka_azimuth.fetching._consumer = _SignalFirst(client)  # type: ignore[assignment]  # stands in for the client
        with pytest.raises(KeyboardInterrupt):
            one.consume(3 * RECORDS, 10)
        one._kafka_azimuth.fetching._consumer = client
        found = read(one, 3 * RECORDS)
    assert offsets(found) == {number: list(range(RECORDS)) for number in range(3)}
    assert came.is_set()
    closing = threading.Thread(target=one.close, daemon=True)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()


def test_ctrl_c_in_a_process_with_callbacks_loses_no_record() -> None:
    """Real signals at random moments; the process closes its consumer and ends."""
    drawn = random.Random(7)
    with subprocess.Popen([sys.executable, SIGNALLED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            until = time.monotonic() + 60
            while not select.select([process.stdout], [], [], drawn.uniform(0.02, 0.25))[0]:
                assert time.monotonic() < until
                process.send_signal(signal.SIGINT)
            told = json.loads(process.stdout.readline())
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert told["wrong"] == []
    assert told["raised"]
    assert told["called"]


def test_the_log_of_the_member_reaches_the_logger_where_the_broker_assigns(mock: MockCluster) -> None:
    """Its client's lines went to standard error, and they are those of the group."""
    clients: set[object] = set()

    class Logger:
        def log(self, *args: object) -> None:
            clients.add(args[3])

    config = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "group.protocol": "consumer"}
    one = GroupConsumer({**config, "debug": "cgrp"}, logger=Logger())  # type: ignore[arg-type]  # as much of one as is used
    one.subscribe(["t"])
    until = time.monotonic() + 20
    while len(clients) < 2:  # the member's and the fetching one
        assert time.monotonic() < until
        one.poll(0.1)
    one.close()


@pytest.mark.parametrize("call", [lambda one: one.poll(1), lambda one: one.consume(20, 1)], ids=["poll", "consume"])
def test_a_callback_may_close_the_consumer_whose_call_made_it(mock: MockCluster, call: Any) -> None:
    """The call went on with the closed client, whose RuntimeError is no error of the consumer."""
    made: list[GroupConsumer] = []
    with consumer(mock, error_cb=lambda _: made[0].close()) as one:
        made.append(one)
        one.subscribe(["t"])
        read(one, 3 * RECORDS)
        one._kafka_azimuth.fetching._config["error_cb"](KafkaError(KafkaError._TRANSPORT))
        one._kafka_azimuth.fetching.ahead.interrupt()  # as after a call of the client that had records, too
        with pytest.raises(ClosedConsumerError):
            call(one)


def test_callbacks_come_in_the_thread_that_polls(mock: MockCluster) -> None:
    """As in the bare client: a program's function may use objects that belong to that thread."""
    for kind in (Consumer, GroupConsumer):
        threads: set[int] = set()
        made: Any = {
            "bootstrap.servers": mock.bootstrap_servers,
            "group.id": "g",
            "statistics.interval.ms": 5,
            "stats_cb": lambda _, threads=threads: threads.add(threading.get_ident()),
        }
        one: Any = kind(made)
        until = time.monotonic() + 20
        while not threads:
            assert time.monotonic() < until
            one.poll(0.05)
        one.close()
        assert threads == {threading.get_ident()}
