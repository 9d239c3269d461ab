"""Keeps the leaders of a confluent-kafka producer fresh, from a thread of its own."""

import threading
import warnings
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from time import monotonic, thread_time

from producer.decisions.leader_locality import Leaders
from producer.errors import MetadataError, PollWarning, RackWarning
from producer.partitioning.topics_in_use import TopicsInUse
from producer.topology import Lister, Topology, read_leaders

_CHANGES_S = 30.0
_DOUBLINGS = 10
_FEW = 16
"""Topics that are asked for one by one through the producer, where each question waits behind records. More are asked
for by name in one request over another connection."""
_RACKS_AT_LEAST_S = 1.0
_GRACE_S = 5.0
_SILENT_S = 300.0
_REST = 20
"""How many times as long as a reading computes the thread rests: a twentieth of a core at most, for it holds the
interpreter's lock, and at 10,000 topics a reading takes a second of it."""


Question = Callable[[float], Mapping[str, tuple[int | None, ...]]]
"""Asks the cluster for leaders within some seconds."""


class LeaderWatcher:
    """Reads leaders when a topic is new, on request, and otherwise every `refresh_s`.

    A leader that returns to the zone causes no error, and librdkafka's own refresh takes 300 s. So while a topic is
    away from its zone or missing, that topic is read after `away_s`, and then after twice as long each time up to
    `refresh_s`, until something changes. A reading of a few topics refreshes librdkafka's leaders too.

    Contract:
    * `load` blocks its callers for the first reading of a topic only; all others, also of a topic that was not found,
      happen in the thread. While the cluster does not answer, `load` blocks for the topology's timeout in all.
    * The second topic reads all of them, so that hundreds of topics cost two readings, not hundreds.
    * `client` gives the producer or, when that is gone, None (a weak reference does): the thread ends then.
    * `drain` polls for an application that does not; it returns False where only the application may.
    * A cluster that does not answer, or does not allow the question, is reported once as a warning. Leaders and racks
      that are known stay in use; librdkafka chooses for topics without any.
    """

    def __init__(  # noqa: PLR0913 - one setting each, keyword-only
        self,
        client: Callable[[], Lister | None],
        topics_in_use: TopicsInUse,
        topology: Topology,
        *,
        refresh_s: float = 30.0,
        away_s: float = 1.0,
        drain: Callable[[], bool] = lambda: False,
    ) -> None:
        self._client = client
        self._topics_in_use = topics_in_use
        self._topology = topology
        self._refresh_s = refresh_s
        self._away_s = away_s
        self._drain = drain
        self._missing: set[str] = set()
        self._listed: Mapping[str, tuple[int | None, ...]] = {}
        self._listed_at = -inf
        self._read_at = -inf
        self._all_read_at = -inf
        self._blocked_s = 0.0
        self._racks_failed = False
        self._unchanged = 0
        self._changes_until = -inf
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
        if topic in self._missing or not isinstance(topic, str):  # the client refuses it with its name
            return
        if topic in self._listed and monotonic() - self._listed_at < self._refresh_s:
            self._topics_in_use.update(topic, self._listed[topic], self._topology.racks, monotonic())
        else:
            self._load_now(topic)
        if topic in self._missing or self._must_hurry():
            self._unchanged = 0
            self._wake.set()  # the thread may be asleep for `refresh_s`
        self._start()

    def _load_now(self, topic: str) -> None:
        client, left_s = self._client(), self._topology.timeout_s - self._blocked_s
        began = monotonic()
        asked = client is not None and left_s > 0
        if client is not None and asked:
            question = None if self._topics_in_use.partitioners else topic
            answered = self._read(partial(read_leaders, client, question), {topic}, left_s, lists=question is None)
            self._blocked_s = 0.0 if answered else self._blocked_s + monotonic() - began
        if topic not in self._topics_in_use.partitioners:
            self._missing.add(topic)

    def refresh_soon(self) -> None:
        """Ask for a reading of all topics in use; returns at once."""
        self._all_read_at = -inf
        self._wake.set()

    def expect_changes(self) -> None:
        """Read now and then every `away_s` for a while: a controller takes seconds to move a dead broker's leaders."""
        now = monotonic()
        if now > self._changes_until:  # or a caller for each record would have the thread read without a rest
            self.refresh_soon()
        self._changes_until = now + _CHANGES_S

    def take_leaders(self, topic: str, leaders: Mapping[int, int], at: float) -> None:
        """Take the leaders that the client itself has learned, as from an answer to a produce request (KIP-951).

        Args:
            topic: its name.
            leaders: broker id per partition; partitions that the client knows no leader of are negative or left out.
            at: when the client wrote this, seconds of the monotonic clock; older than the last reading it is ignored.
        """
        partitioner = self._topics_in_use.partitioners.get(topic)
        if partitioner is None:
            if topic in self._missing and max(leaders.values(), default=-1) >= 0:
                self.refresh_soon()
            return
        if at < self._read_at:
            return
        before = partitioner.leaders
        now = tuple(leaders[p] if leaders.get(p, -1) >= 0 else leader for p, leader in enumerate(before))
        if now == before:
            return
        if not {leader for leader in now if leader is not None} <= self._topology.racks.keys():
            self.refresh_soon()  # the thread asks for the new broker's rack
            return
        self._topics_in_use.update(topic, now, self._topology.racks, monotonic())
        self._unchanged = 0
        self._wake.set()

    def await_report(self, within_s: float) -> None:
        """Expect the next report within this many seconds; without polling it waits in memory."""
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

    def _must_hurry(self) -> bool:
        return bool(self._missing) or self._racks_failed or self._topics_in_use.away() or self._expects_changes()

    def _expects_changes(self) -> bool:
        return monotonic() < self._changes_until

    def wait_s(self) -> float:
        """Return how long the thread may sleep: short at first while a topic is away or missing, then longer."""
        if not self._must_hurry():
            return self._refresh_s
        doublings = 0 if self._expects_changes() else min(self._unchanged, _DOUBLINGS)
        wanted_s = max(_REST * self._spent_s, self._away_s * (1 << doublings))
        return max(self._away_s, min(self._refresh_s, wanted_s))

    def read_due(self) -> bool:
        """Read the leaders that are due; False when there is nothing left to do, ever."""
        client = self._client()
        if client is None or self._closed:
            return False
        self._take_reports()
        topics = self._topics_due()
        before = {name: one.leaders for name, one in self._topics_in_use.partitioners.items()}
        within_s = self._topology.timeout_s
        if len(topics) > _FEW:
            self._read(partial(self._topology.leaders_of, topics), topics, within_s)
        else:
            for topic in sorted(topics):
                if not self._read(partial(read_leaders, client, topic), topics, within_s):
                    break
        changed = any(one.leaders != before.get(name) for name, one in list(self._topics_in_use.partitioners.items()))
        self._unchanged = 0 if changed or self._topics_in_use.returning() else self._unchanged + 1
        return True

    def _topics_due(self) -> set[str]:
        in_use = dict(self._topics_in_use.partitioners)
        now = monotonic()
        if self._racks_failed or self._expects_changes() or now - self._all_read_at >= self._refresh_s:
            self._all_read_at = now
            return {*in_use, *self._missing}
        return {*self._missing, *(name for name, one in in_use.items() if self._topics_in_use.is_away(one))}

    def _read(self, ask: Question, wanted: set[str], timeout_s: float, *, lists: bool = False) -> bool:
        """Ask, and use the leaders of topics in use; False when the cluster does not answer."""
        began, cpu = monotonic(), thread_time()
        try:
            found = ask(timeout_s)
        except MetadataError as error:
            self._warn(str(error))
            return False
        self._read_racks(found, timeout_s - (monotonic() - began))
        self._read_at = now = monotonic()
        if lists:
            self._listed, self._listed_at = found, now
        for name in {*self._topics_in_use.partitioners, *wanted} & found.keys():
            self._topics_in_use.update(name, found[name], self._topology.racks, now)
            self._missing.discard(name)
        self._spent_s = thread_time() - cpu
        return True

    def _read_racks(self, found: Mapping[str, Leaders], timeout_s: float) -> None:
        """Read the racks when they are due. A question that fails leaves leaders and racks as they are known."""
        if not self._topology.racks_are_due(found):
            return
        try:
            self._topology.read_racks(max(timeout_s, _RACKS_AT_LEAST_S))
            self._racks_failed = False
        except MetadataError as error:
            self._racks_failed = True
            self._warn(str(error))

    def _take_reports(self) -> None:
        """Take the reports that the application does not poll for; where that is not allowed, ask it to poll."""
        if self._due_at is None or monotonic() < self._due_at + _GRACE_S:
            return
        if self._drain():
            return
        if monotonic() - self._due_at < _SILENT_S:
            return
        self._due_at = None  # once, until it polls and stops again
        warnings.warn(
            f"poll() was not called for {_SILENT_S:.0f} s, and statistics wait in memory until it is: call poll(0) "
            "regularly, or set statistics.interval.ms to 0",
            PollWarning,
            stacklevel=4,
        )

    def _warn(self, problem: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{problem}; until it answers, librdkafka chooses the partitions of topics whose leaders are not known",
                RackWarning,
                stacklevel=4,
            )


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
        return watcher.read_due()
    except (PollWarning, RackWarning):  # an application that makes errors of warnings must not lose its watch by one
        return True
    except RuntimeError:  # the producer was closed meanwhile
        return False
