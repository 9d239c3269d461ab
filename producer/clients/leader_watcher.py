"""Refreshes the leaders of a confluent-kafka producer, in a separate thread."""

import re
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from time import monotonic, thread_time
from typing import Final

from producer.clients.leader_requests import LeaderRequests
from producer.clients.unpolled_reports import UnpolledReports
from producer.clients.wake_up import WakeUp
from producer.decisions.candidate_partitions_in_zone import Leaders, Replicas
from producer.decisions.producer_settings import need_number
from producer.errors import MetadataError, PollWarning, RackWarning
from producer.metadata_requests import Lister, Topology
from producer.partitioning.topics_in_use import TopicsInUse

SHORTEST_REFRESH_S: Final = 0.001
"""A reading without a pause would keep a core busy, seconds."""
_CHANGES_S = 30.0
_DOUBLINGS = 10
_FEW = 16
"""Number of topics that are read one by one through the producer, where each request waits behind records. More topics
are read by name in one request over another connection."""
_RACKS_AT_LEAST_S = 1.0
_JOIN_S = 1.0
"""Longest wait of `close` for a thread that waits for an answer over a connection of its own, seconds."""
_REST = 20
"""Ratio of the thread's pauses to the CPU time of its readings, so that it uses at most a twentieth of a core: it holds
the interpreter's lock, and at 10,000 topics a reading takes a second."""
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")

AskLeaders = Callable[[float], Mapping[str, tuple[int | None, ...]]]
"""Requests leaders from the cluster within some seconds."""


class LeaderWatcher:
    """Reads leaders if a topic is new, on request, and otherwise every `refresh_s`.

    A leader that returns to the zone causes no error, and librdkafka's own refresh takes 300 s. So while a topic has no
    local leader or is missing, that topic is read after `away_s`, and then after twice the time each time up to
    `refresh_s`, until there is a change. A reading of a few topics also refreshes librdkafka's leaders.

    Contract:
    * `load` blocks its callers only for the first reading of a topic; all other readings, also of a topic that was not
      found, happen in the thread. One thread reads, the others wait for it. While the cluster does not answer, also
      if only the request for racks has no answer, `load` blocks for at most the topology's timeout in total.
    * The second topic reads all topics, so that hundreds of topics need two readings, not hundreds. Topics that this
      reading lacks, or that come later than `refresh_s` after it, are read by name.
    * `load_later` blocks nothing: the thread reads the topic. `load` still waits for it if it comes first.
    * `client` returns the producer or, after its deletion, None (as a weak reference does): then the thread ends.
    * The thread takes `reports` for an application that does not poll.
    * If the cluster does not answer, or refuses the request, one warning reports it. Known leaders and racks stay in
      use; librdkafka chooses for topics without leaders.
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
        need_number("refresh_s", refresh_s, least=SHORTEST_REFRESH_S, most=threading.TIMEOUT_MAX)
        self._client = client
        self._topics_in_use = topics_in_use
        self._topology = topology
        self._refresh_s = refresh_s
        self._away_s = away_s
        self.reports = UnpolledReports(drain)
        self._missing: set[str] = set()
        self._later: set[str] = set()
        self._listed: Mapping[str, tuple[int | None, ...]] = {}
        self._listed_at = -inf
        self._replicas: dict[str, Replicas] = {}
        self._read_at = -inf
        self._all_read_at = -inf
        self._blocked_s = 0.0
        self._racks_failed = False
        self._unchanged = 0
        self._changes_until = -inf
        self._spent_s = 0.0
        self._wake = WakeUp()
        self._requests = LeaderRequests(self._replicas)
        self._warned = False
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self._loading = threading.RLock()
        self._is_loading = False

    def must_load(self, topic: str) -> bool:
        """Return whether `load` would read the topic's leaders, which may block."""
        return _is_name(topic) and topic not in self._topics_in_use.partitioners and topic not in self._missing

    def load(self, topic: str) -> None:
        """Read the leaders of a topic for the first time; returns without a partitioner if they are not available."""
        if not _is_name(topic) or topic in self._missing:  # the client refuses it, and names it
            return
        topic = str.__str__(topic)  # a `StrEnum` is a name, too; compiled code and the client's answers have plain ones
        with self._loading:
            # Another thread has read it meanwhile, or a signal handler interrupts a reading of this thread: signals
            # that come faster than answers would nest without end.
            if self._is_loading or not self.must_load(topic):
                return
            if topic in self._listed and monotonic() - self._listed_at < self._refresh_s:
                self._use(topic, self._listed[topic], monotonic())
            else:
                try:
                    self._is_loading = True
                    self._load_now(topic)
                finally:
                    self._is_loading = False
        if topic in self._missing or self._must_hurry():
            self._unchanged = 0
            self._wake.set()  # the thread may sleep for `refresh_s`
        self._start()

    def load_later(self, topic: str) -> None:
        """Let the thread read the leaders of a topic whose partitions the application chooses, to count by zone."""
        if topic not in self._later and self.must_load(topic):
            self._later.add(str.__str__(topic))  # as in `load`
            self._unchanged = 0
            self._wake.set()
            self._start()

    def _load_now(self, topic: str) -> None:
        client, left_s = self._client(), self._topology.timeout_s - self._blocked_s
        began = monotonic()
        asked = client is not None and left_s > 0
        if client is not None and asked:
            lists = bool(self._topics_in_use.partitioners) and self._listed_at == -inf
            question = None if lists else topic
            answered = self._read(
                partial(self._requests.ask_apart, client, question), {topic}, left_s, lists=lists, blocks=True
            )
            self._blocked_s = 0.0 if answered else self._blocked_s + monotonic() - began
        if topic not in self._topics_in_use.partitioners:
            self._missing.add(topic)

    def refresh_soon(self) -> None:
        """Request a reading of all topics in use; returns immediately."""
        self._all_read_at = -inf
        self._wake.set()

    def expect_changes(self) -> None:
        """Read now, and then every `away_s` for a while: a controller needs seconds to move a dead broker's leaders."""
        now = monotonic()
        if now > self._changes_until:  # otherwise calls for each record would make the thread read without a pause
            self.refresh_soon()
        self._changes_until = now + _CHANGES_S

    def take_leaders(self, topic: str, leaders: Mapping[int, int], at: float) -> None:
        """Use the leaders that the client itself has learned, such as from a produce response (KIP-951).

        Args:
            topic: its name.
            leaders: broker id per partition; partitions without a known leader are negative or left out.
            at: time of the data, seconds of the monotonic clock; data older than the last reading are ignored.
        """
        partitioner = self._topics_in_use.partitioners.get(topic)
        if partitioner is None:
            if topic in self._without_leaders() and max(leaders.values(), default=-1) >= 0:
                self.refresh_soon()
            return
        if at < self._read_at:
            return
        before = partitioner.leaders
        now = tuple(leaders[p] if leaders.get(p, -1) >= 0 else leader for p, leader in enumerate(before))
        if now == before:
            return
        if not {leader for leader in now if leader is not None} <= self._topology.racks.keys():
            self.refresh_soon()  # the thread reads the new broker's rack
            return
        self._use(topic, now, monotonic())
        self._unchanged = 0
        self._wake.set()

    def expect_racks(self, since: float) -> None:
        """Read the racks again, because a broker returned at this time, seconds of the monotonic clock."""
        if self._topology.reads_racks:
            self._topology.expect_racks(since)
            self.refresh_soon()

    def start_for_reports(self) -> None:
        """Start the thread, if reports are expected: they would fill the memory of a producer that loads no topic."""
        if self.reports.are_expected:
            self._start()

    def close(self) -> None:
        """Stop the thread, and wait until it does not use the client any more; may be called twice."""
        self._requests.close()
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread() and thread.is_alive():
            thread.join(_JOIN_S)

    def _start(self) -> None:
        if self._thread is not None:
            return
        arguments = _waking_at_end(self, self._wake), self._wake
        thread = threading.Thread(target=_run, args=arguments, name="azimuth-leaders", daemon=True)
        with self._lock:
            # No call between the check and the assignment: there a signal handler could start another thread.
            if self._thread is None and not self._requests.closed:
                self._thread = thread
                thread.start()

    def _without_leaders(self) -> set[str]:
        """Return the topics that the thread is to read for the first time."""
        return self._missing | self._later

    def _must_hurry(self) -> bool:
        return (
            bool(self._without_leaders()) or self._racks_failed or self._topics_in_use.away() or self._expects_changes()
        )

    def _expects_changes(self) -> bool:
        return monotonic() < self._changes_until

    def wait_s(self) -> float:
        """Return the time that the thread may sleep: short at first while a topic is away or missing, then longer."""
        if not self._must_hurry():
            return self._refresh_s
        doublings = 0 if self._expects_changes() else min(self._unchanged, _DOUBLINGS)
        wanted_s = max(_REST * self._spent_s, self._away_s * (1 << doublings))
        return max(self._away_s, min(self._refresh_s, wanted_s))

    def read_due(self) -> bool:
        """Read the leaders that are due; False if the thread can end."""
        client = self._client()
        if client is None or not self._requests.unless_closed(self.reports.take):
            return False
        topics = self._topics_due()
        before = {name: one.leaders for name, one in list(self._topics_in_use.partitioners.items())}
        within_s = self._topology.timeout_s
        if len(topics) > _FEW and self._topology.has_connection:
            self._read(partial(self._topology.leaders_of, topics, replicas=self._replicas), topics, within_s)
        else:
            for topic in sorted(topics):
                if not self._read(partial(self._requests.ask, client, topic), topics, within_s):
                    break
        changed = any(one.leaders != before.get(name) for name, one in list(self._topics_in_use.partitioners.items()))
        self._unchanged = 0 if changed or self._topics_in_use.returning() else self._unchanged + 1
        return True

    def _topics_due(self) -> set[str]:
        in_use = dict(self._topics_in_use.partitioners)
        now = monotonic()
        if self._racks_failed or self._expects_changes() or now - self._all_read_at >= self._refresh_s:
            self._all_read_at = now
            return self._without_leaders() | in_use.keys()
        return self._without_leaders() | {name for name, one in in_use.items() if self._topics_in_use.is_away(one)}

    def _read(
        self, ask: AskLeaders, wanted: set[str], timeout_s: float, *, lists: bool = False, blocks: bool = False
    ) -> bool:
        """Request leaders, and use those of topics in use; False if the cluster does not answer.

        If a first record waits for it (`blocks`), racks that could not be read are left to the thread.
        """
        began, cpu = monotonic(), thread_time()
        self._requests.apart_s = 0.0
        try:
            found = ask(timeout_s)
        except MetadataError as error:
            self._warn(str(error))
            return False
        if not (blocks and self._racks_failed):
            least_s = 0.0 if blocks else _RACKS_AT_LEAST_S
            self._read_racks(found, max(timeout_s - (monotonic() - began), least_s))
        self._read_at = now = monotonic()
        if lists:
            self._listed, self._listed_at = found, now
        for name in {*self._topics_in_use.partitioners, *wanted} & found.keys():
            self._use(name, found[name], now)
            self._missing.discard(name)
        self._spent_s = thread_time() - cpu + self._requests.apart_s
        return True

    def _use(self, topic: str, leaders: Leaders, now: float) -> None:
        self._topics_in_use.update(topic, leaders, self._topology.racks, now, self._replicas.get(topic, ()))
        self._later.discard(topic)

    def _read_racks(self, found: Mapping[str, Leaders], timeout_s: float) -> None:
        """Read the racks if they are due. After a failed request the known leaders and racks stay."""
        if not self._topology.racks_are_due(found):
            return
        try:
            self._topology.read_racks(timeout_s)
            self._racks_failed = False
        except MetadataError as error:
            self._racks_failed = True
            self._warn(str(error))

    def _warn(self, problem: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{problem}; until it answers, librdkafka chooses the partitions of topics whose leaders are not known",
                RackWarning,
                stacklevel=4,
            )


def _is_name(topic: object) -> bool:
    """Return whether a topic may have this name, by the rule of Kafka's brokers.

    Other names are not asked for: librdkafka keeps the answer, and then refuses the first record in `produce`, in place
    of its delivery report.
    """
    return isinstance(topic, str) and _NAME.fullmatch(topic) is not None and topic not in {".", ".."}


def _waking_at_end(watcher: LeaderWatcher, wake: WakeUp) -> "weakref.ref[LeaderWatcher]":
    """Return a reference that ends the thread's sleep when the producer, the watcher's only owner, is forgotten."""
    return weakref.ref(watcher, lambda _: wake.set())


def _run(owner: "weakref.ref[LeaderWatcher]", wake: WakeUp) -> None:
    wait_s = 0.0
    while True:
        watcher = owner()
        if watcher is None:
            return
        wait_s = watcher.wait_s()
        del watcher
        wake.wait(wait_s)
        watcher = owner()
        if watcher is None or not _still_reads(watcher):
            return
        del watcher


def _still_reads(watcher: LeaderWatcher) -> bool:
    try:
        return watcher.read_due()
    except (PollWarning, RackWarning):  # an application that turns warnings into errors must not lose the thread
        return True
    except RuntimeError:  # the producer has been closed
        return False
