"""Keeps the leaders of a confluent-kafka producer fresh, from a thread of its own."""

import threading
import warnings
import weakref
from collections.abc import Callable
from time import monotonic, thread_time

from producer.errors import MetadataError, PollWarning, RackWarning
from producer.partitioning.topics_in_use import TopicsInUse
from producer.topology import Lister, Topology

_UNEASY_S = 30.0
_SILENT_S = 300.0
_REST = 20
"""How many times as long as a reading computes the thread rests: a twentieth of a core at most, for it holds the
interpreter's lock, and at 10,000 topics a reading takes a second of it."""


class LeaderWatcher:
    """Reads leaders when a topic is new, when delivered, and otherwise every `refresh_s`.

    A way back to a local leader raises no error anywhere, and librdkafka's own refresh takes 300 s, so while some topic
    is away from its zone the leaders are read every `away_s`, less often where there are thousands of topics. Each
    reading refreshes librdkafka's leaders too.

    Contract:
    * `load` blocks its callers for the first reading of a topic only; all others, also of a topic that was not found,
      happen in the thread. The second topic reads all of them, so that hundreds of topics cost two readings, not
      hundreds.
    * `client` gives the producer or, when that is gone, None (a weak reference does): the thread ends then.
    * A cluster that does not answer, or does not allow the question, is reported once as a warning; the records then go
      where librdkafka puts them.
    """

    def __init__(
        self,
        client: Callable[[], Lister | None],
        topics_in_use: TopicsInUse,
        topology: Topology,
        *,
        refresh_s: float = 30.0,
        away_s: float = 1.0,
    ) -> None:
        self._client = client
        self._topics_in_use = topics_in_use
        self._topology = topology
        self._refresh_s = refresh_s
        self._away_s = away_s
        self._missing: set[str] = set()
        self._known: dict[str, tuple[int | None, ...]] = {}
        self._uneasy_until = 0.0
        self._spent_s = 0.0
        self._due_at: float | None = None
        self._wake = threading.Event()
        self._closed = False
        self._warned = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def must_load(self, topic: str) -> bool:
        """Return whether `load` would read the topic's leaders, which may block."""
        return isinstance(topic, str) and topic not in self._topics_in_use.partitioners and topic not in self._missing

    def load(self, topic: str) -> None:
        """Read the leaders of a topic for the first time; returns without a partitioner when they cannot be had."""
        if topic in self._missing or not isinstance(topic, str):  # the client says what is wrong with it
            return
        if topic in self._known:
            self._topics_in_use.update(topic, self._known[topic], self._topology.racks, monotonic())
            return
        client = self._client()
        if client is not None and not self._read(client, None if self._topics_in_use.partitioners else topic, {topic}):
            self._missing.add(topic)
            self.refresh_soon()  # or the thread would sleep on as if nothing were missing
        self._start()

    def refresh_soon(self) -> None:
        """Ask for a reading now; returns at once."""
        self._wake.set()

    def expect_changes(self) -> None:
        """Read now and then every `away_s` for a while: a controller takes seconds to move a dead broker's leaders."""
        now = monotonic()
        if now > self._uneasy_until:  # or a caller for each record would have the thread read without a rest
            self._wake.set()
        self._uneasy_until = now + _UNEASY_S

    def await_report(self, within_s: float) -> None:
        """The next report comes within so many seconds if the application polls, and waits in memory else."""
        self._due_at = monotonic() + within_s

    def close(self) -> None:
        """Stop the thread; may be called twice."""
        self._closed = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=_run, args=(weakref.ref(self), self._wake), name="azimuth-leaders", daemon=True
                )
                self._thread.start()

    def wait_s(self) -> float:
        """Say how long the thread may sleep: short while away from the own zone or while a topic is missing."""
        uneasy = self._missing or self._topics_in_use.away() or monotonic() < self._uneasy_until
        return max(self._away_s, min(self._refresh_s, _REST * self._spent_s)) if uneasy else self._refresh_s

    def read_all(self) -> bool:
        """Read the leaders of every topic in use; False when there is nothing left to do, ever."""
        client = self._client()
        if client is None or self._closed:
            return False
        self._ask_to_poll()
        topics = {*self._topics_in_use.partitioners, *self._missing}
        self._read(client, next(iter(topics)) if len(topics) == 1 else None, topics)
        return True

    def _read(self, client: Lister, topic: str | None, wanted: set[str]) -> bool:
        began = thread_time()
        try:
            found = self._topology.leaders(client, topic)
        except MetadataError as error:
            found = {}
            self._warn(str(error))
        now = monotonic()
        if topic is None:
            self._known = found
        for name in {*self._topics_in_use.partitioners, *wanted} & found.keys():
            self._topics_in_use.update(name, found[name], self._topology.racks, now)
            self._missing.discard(name)
        self._spent_s = thread_time() - began
        return wanted <= found.keys()

    def _ask_to_poll(self) -> None:
        if self._due_at is None or monotonic() - self._due_at < _SILENT_S:
            return
        self._due_at = None  # once, until it polls and stops again
        warnings.warn(
            f"poll() was not called for {_SILENT_S:.0f} s, and statistics wait in memory until it is: call poll(0) now "
            "and then, or set statistics.interval.ms to 0",
            PollWarning,
            stacklevel=4,
        )

    def _warn(self, problem: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(f"{problem}; until it answers, librdkafka chooses the partitions", RackWarning, stacklevel=4)


def _run(owner: "weakref.ref[LeaderWatcher]", wake: threading.Event) -> None:
    wait_s = 0.0
    while True:
        watcher = owner()
        if watcher is None:
            return
        wait_s = watcher.wait_s()
        del watcher
        wake.wait(wait_s)
        wake.clear()
        watcher = owner()
        if watcher is None or not _still_reads(watcher):
            return
        del watcher


def _still_reads(watcher: LeaderWatcher) -> bool:
    try:
        return watcher.read_all()
    except (PollWarning, RackWarning):  # an application that makes errors of warnings must not lose its watch by one
        return True
    except RuntimeError:  # the producer was closed meanwhile
        return False
