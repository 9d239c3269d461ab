"""The end of a query's reader: it leaves the group, whatever Spark sends it and when."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import IO

import pytest

_READER = """
import signal, sys
from types import SimpleNamespace
from spark_sink.source import membership_session as module

class Group:
    def __init__(self, *_, **__): pass
    def leave(self):
        print("leaves", flush=True)
        sys.stdin.readline()
        print("left", flush=True)

class Pauses:
    def __init__(self, *_): pass
    def __call__(self): pass
    def close(self): pass

def nothing(*_, **__):
    return SimpleNamespace(start=lambda: None, stop=lambda: None)

module.BatchPlanner, module.KafkaMembership, module.PausedTopics, module.OrphanWatch = Group, nothing, Pauses, nothing
limits = SimpleNamespace(max_bytes=None)
session = module.MembershipSession(SimpleNamespace(
    kafka={"bootstrap.servers": "b:1"}, group="g", limits=limits, session_timeout_s=1, max_poll_interval_s=1,
    telemetry=None, holding=None, positions=None,
))
print("reads", flush=True)
if sys.argv[1] == "ends without a call":
    signal.pause()
try:
    sys.stdin.readline()  # as from the JVM, which may close
finally:
    session.close()
"""


@pytest.fixture
def reader(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process with a membership, whose leave waits for a line of its input."""
    command = [sys.executable, "-c", _READER, getattr(request, "param", "")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert _pipes(process)[1].readline() == "reads\n"
        yield process
        process.kill()


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018 -- for the types
    return process.stdin, process.stdout


def _goes_on(process: subprocess.Popen[str]) -> None:
    given, _ = _pipes(process)
    given.write("\n")
    given.flush()


def _leaves_undisturbed(process: subprocess.Popen[str]) -> None:
    _, said = _pipes(process)
    assert said.readline() == "leaves\n"
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    _goes_on(process)
    assert said.readline() == "left\n"
    assert process.wait(30) == 0


def test_signals_do_not_interrupt_a_leave_that_a_closed_connection_began(reader: subprocess.Popen[str]) -> None:
    """Spark closes the connection first, and sends the signal while the reader may be leaving already."""
    _goes_on(reader)
    _leaves_undisturbed(reader)


def test_a_second_signal_does_not_interrupt_the_leave_of_the_first(reader: subprocess.Popen[str]) -> None:
    """Spark sends two within a millisecond."""
    reader.send_signal(signal.SIGTERM)
    _leaves_undisturbed(reader)


@pytest.mark.parametrize("reader", ["ends without a call"], indirect=True)
def test_a_signal_outside_the_calls_of_spark_leaves_the_group_too(reader: subprocess.Popen[str]) -> None:
    """It may come between the end of the connection and Spark's call of `stop`."""
    reader.send_signal(signal.SIGTERM)
    _leaves_undisturbed(reader)
