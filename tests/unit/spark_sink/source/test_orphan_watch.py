"""The reader notices when its query sleeps or dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from spark_sink.source.orphan_watch import OrphanWatch, QueryProcess, State, relatives


@pytest.fixture
def child() -> Iterator[psutil.Popen]:
    """A process that waits."""
    process = psutil.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()
    process.stdin.close()


def related(process: psutil.Popen, *, reads: bool = True) -> QueryProcess:
    """Depend on that process."""
    return QueryProcess(pid=process.pid, created=process.create_time(), name="JVM", reads=reads)


def until(relative: QueryProcess, state: State) -> None:
    """Wait for a signal to have its effect."""
    deadline = time.monotonic() + 10
    while relative.state() is not state:
        assert time.monotonic() < deadline


class Told:
    """The reports of a watch."""

    def __init__(self, *kin: QueryProcess) -> None:
        self.now = 0.0
        self.asleep: list[str] = []
        self.dead: list[str] = []
        self.watch = OrphanWatch(
            asleep=self.asleep.append,
            dead=self.dead.append,
            patience_s=6.0,
            silence_s=300.0,
            kin=kin,
            clock=lambda: self.now,
        )


def test_a_killed_process_is_dead_also_while_nobody_has_reaped_it(child: psutil.Popen) -> None:
    """A zombie in the sense of the process table is as dead as one that is gone."""
    told = Told(related(child))
    assert told.watch.look()
    child.send_signal(signal.SIGKILL)
    until(related(child), State.DEAD)
    assert not told.watch.look()
    assert told.dead == [f"its JVM (process {child.pid}) is gone"]


def test_a_number_that_was_given_out_again_is_another_process(child: psutil.Popen) -> None:
    """The moment of its start tells them apart."""
    assert QueryProcess(pid=child.pid, created=1.0, name="JVM", reads=True).state() is State.DEAD


def test_a_stopped_jvm_is_asleep_only_after_the_session(child: psutil.Popen) -> None:
    """A short stop costs no rebalance; a long one is told once, and again after the query was back."""
    told = Told(related(child))
    child.send_signal(signal.SIGSTOP)
    until(related(child), State.ASLEEP)
    for now in (1.0, 6.9):
        told.now = now
        assert told.watch.look()
    assert not told.asleep
    for now in (7.0, 8.0, 9.0):
        told.now = now
        told.watch.look()
    assert len(told.asleep) == 1
    assert "stopped for 6 s" in told.asleep[0]
    child.send_signal(signal.SIGCONT)
    until(related(child), State.ALIVE)
    with told.watch:
        pass
    told.watch.look()
    assert len(told.asleep) == 1


def test_a_stopped_driver_does_not_matter_while_its_jvm_runs(child: psutil.Popen) -> None:
    """The JVM runs the batches; the Python that started it may wait as long as it likes."""
    child.send_signal(signal.SIGSTOP)
    until(related(child), State.ASLEEP)
    assert related(child, reads=False).state() is State.ALIVE


def test_a_query_that_asks_for_nothing_is_asleep() -> None:
    """As max.poll.interval.ms has it; a call that takes long is no silence."""
    told = Told()
    with told.watch:
        told.now = 1_000.0
        told.watch.look()
    assert not told.asleep
    told.now = 1_299.0
    told.watch.look()
    assert not told.asleep
    told.now = 1_300.0
    told.watch.look()
    assert told.asleep == ["it has asked for nothing for 300 s"]


def test_without_a_jvm_the_parent_is_the_query() -> None:
    """For a reader that is run without Spark."""
    (parent,) = relatives(os.getpid())
    assert parent.pid == os.getppid()
    assert parent.state() is State.ALIVE
