"""Watches whether the reader's query is still alive.

The reader is a separate process and a member of the group. If the driver's Python, its JVM or the whole process group
is killed, the reader may survive: it would continue to send heartbeats and keep partitions that no process reads. A JVM
that is stopped, or that requests no more batches, has the same effect.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import psutil

STARTED_BY = "AZIMUTH_STARTED_BY"
"""Environment variable of a forked process: the id of the process that stands for it among the JVM's children."""
_INTERVAL_S = 0.5


class State(Enum):
    """The state of the query."""

    ALIVE = "alive"
    ASLEEP = "asleep"  # stopped, or silent for longer than allowed: it may resume
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProcess:
    """A process that the query needs, with its start time, because process ids are reused."""

    pid: int
    created: float
    name: str
    reads: bool

    def state(self) -> State:
        """Return the present state of the process."""
        try:
            process = psutil.Process(self.pid)
            if process.create_time() != self.created:
                return State.DEAD
            status = process.status()
        except psutil.NoSuchProcess:
            return State.DEAD
        except psutil.AccessDenied:
            return State.ALIVE
        if status in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}:
            return State.DEAD
        if status in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP} and self.reads:
            return State.ASLEEP
        return State.ALIVE


def relatives(pid: int | None = None) -> list[QueryProcess]:
    """Find the processes that the reader depends on: those up to the JVM, the JVM, and the Python that started it.

    A JVM started by pyspark (its command line ends in `pyspark-shell`) dies with its Python. A JVM started by
    `spark-submit` is the parent of the Python, and then processes above the JVM do not matter.
    """
    found: list[QueryProcess] = []
    for process in _above(pid):
        command = _command(process)
        java = bool(command) and Path(command[0]).name == "java"
        name = "JVM" if java else "Python" if str(process.pid) == os.environ.get(STARTED_BY) else process.name()
        found.append(QueryProcess(pid=process.pid, created=process.create_time(), name=name, reads=True))
        if java:
            if "pyspark-shell" in command and (driver := process.parent()) is not None and driver.pid > 1:
                found.append(QueryProcess(pid=driver.pid, created=driver.create_time(), name="driver", reads=False))
            return found
    # Without a JVM above, such as in a test without Spark, only the parent is known.
    return found[:1]


def _above(pid: int | None) -> list[psutil.Process]:
    started_by = os.environ.get(STARTED_BY)
    if pid is None and started_by is not None:
        starter = psutil.Process(int(started_by))
        return [starter, *starter.parents()]
    return psutil.Process(pid).parents()


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class OrphanWatch:
    """A thread that checks the query, and reports if it makes no progress or is dead.

    Contract:
    * `asleep` is called once each time the query has been stopped or silent for `patience_s`; it may block.
    * `dead` is called once, in the watching thread, and the watch ends.
    """

    def __init__(  # noqa: PLR0913 -- two callbacks, two limits, and the values that tests replace
        self,
        *,
        asleep: Callable[[str], None],
        dead: Callable[[str], None],
        patience_s: float,
        silence_s: float,
        kin: Iterable[QueryProcess] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asleep, self._dead = asleep, dead
        self._patience_s, self._silence_s = patience_s, silence_s
        self._kin = list(relatives() if kin is None else kin)
        self._clock = clock
        self._heard = clock()
        self._calling = False
        self._stopped_since: float | None = None
        self._told = False
        self._ended = threading.Event()

    def start(self) -> None:
        """Start watching."""
        threading.Thread(target=self._run, name="query-watch", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self._ended.set()

    def __enter__(self) -> None:
        """Mark the start of a call by the query."""
        self._calling = True

    def __exit__(self, *_: object) -> None:
        self._calling = False
        self._heard = self._clock()
        self._told = False

    def look(self) -> bool:
        """Check once; True while the query is not dead."""
        states = {one: one.state() for one in self._kin}
        gone = [one for one, state in states.items() if state is State.DEAD]
        if gone:
            self._dead(f"its {gone[0].name} (process {gone[0].pid}) is gone")
            return False
        stopped = [one for one, state in states.items() if state is State.ASLEEP]
        now = self._clock()
        self._stopped_since = (self._stopped_since or now) if stopped else None
        if self._told:
            return True
        if self._stopped_since is not None and now - self._stopped_since >= self._patience_s:
            self._told = True
            self._asleep(
                f"its {stopped[0].name} (process {stopped[0].pid}) has been stopped for {self._patience_s:g} s"
            )
        elif not self._calling and now - self._heard >= self._silence_s:
            self._told = True
            self._asleep(f"it has asked for nothing for {self._silence_s:g} s")
        return True

    def _run(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            if not self.look():
                return
