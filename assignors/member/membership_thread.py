# ruff: noqa: SLF001 -- kafka-python's coordinator is inside its consumer
"""The thread that keeps a membership: joins, stays, joins again, and ends."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Self

from kafka.errors import FencedInstanceIdError, KafkaError
from kafka.future import Future

from assignors.clients.kafka_python_internals import (
    back_off_absent_topics,
    last_metadata_ms,
    short_backoff,
    wake_on_metadata,
    wake_on_rejoin,
)
from assignors.errors import MembershipError
from assignors.member.ending_thread import EndingThread
from assignors.member.fatal_errors import OnRefused, Refusals
from assignors.member.kafka_python_corrections import leave_although_static
from assignors.member.ownership import Ownership, OwnershipCell
from assignors.member.rebalance_listener import RebalanceListener
from assignors.member.session_timeout import SessionEnd
from assignors.protocol.base_assignor import assignment_of

log = logging.getLogger(__name__)

_POLL_MS: Final = 200
_TOPICS_MS: Final = 2_000
_FRESH_S: Final = 3.0  # half of the shortest session that brokers allow by default
_PAUSE_S: Final = 0.05
_QUIET_S: Final = 1.0
_QUIET_POLL_S: Final = 3.0
_QUIET_POLL_PART: Final = 0.05
_SETTLE_S: Final = 5.0
_BACKOFF_S: Final = 0.5
_CLOSE_MS: Final = 3_000


OnTopics = Callable[[frozenset[str], frozenset[str]], object]


class _JoinAnswer(Future):
    """The answer to a join, which appears incomplete until a poll waits for it.

    Before each poll kafka-python checks whether a join is answered, and if so it drops the answer and rejoins: an
    answer that arrives between two polls would cost the whole group a second rebalance.
    """

    def __init__(self, answer: Future) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # kafka-python
        self.answer = answer

    def add_callback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:  # noqa: ANN401 - kafka-python's
        """Pass the answer on, because a poll waits for it."""
        super().add_callback(f, *args, **kwargs)  # type: ignore[no-untyped-call]  # kafka-python
        self.answer.add_callback(self.success)
        self.answer.add_errback(self.failure)
        return self


class MemberThread:
    """Drives kafka-python's coordinator, and writes the state of the member to the cell.

    Contract:
    * The thread survives errors that a retry can fix; it passes any other error to the listener and ends.
    * While `awake` returns False, the member joins no rebalance, but finishes one that it has joined.
    * If it has to end during a rebalance, it first finishes the rebalance, for at most 5 s, awake or not. If a slow
      member delays the rebalance for longer, the last commit fails: records since the previous one are delivered again.
    * An answer to a join is used even if it arrives between two polls; the topics are known before the first join.

    Args:
        consumer: kafka-python's, subscribed with the listener.
        listener: gets a failure, and ends with the thread.
        cell: written to after each step.
        awake: called before each step.
        on_topics: called with the existing topics, and those that this client may not read, when they are listed.
        on_refused: as in `Refusals`.
        quiet_s: seconds between two steps without events.
        ends_with_session: lose the partitions if the coordinator does not answer for a session.
    """

    def __init__(  # noqa: PLR0913 -- the arguments of the member, passed on
        self,
        consumer: Any,  # noqa: ANN401 - kafka-python is untyped
        listener: RebalanceListener,
        cell: OwnershipCell,
        awake: Callable[[], bool],
        on_topics: OnTopics = lambda _known, _unauthorized: None,
        *,
        on_refused: OnRefused | None = None,
        quiet_s: float = _QUIET_S,
        ends_with_session: bool = False,
    ) -> None:
        self._consumer = consumer
        self._coordinator = consumer._coordinator
        self._listener = listener
        self._cell = cell
        self._awake = awake
        self._on_topics = on_topics
        self._session = SessionEnd(consumer._coordinator) if ends_with_session else None
        self._refusals = Refusals(self._coordinator.group_id, on_refused)
        max_poll_s = self._coordinator.config["max_poll_interval_ms"] / 1000
        self._quiet_s = min(quiet_s, max_poll_s * _QUIET_POLL_PART)
        self._quiet_poll_s = min(_QUIET_POLL_S, max_poll_s * _QUIET_POLL_PART)
        self._topics_at = 0.0
        self._ended = threading.Event()
        self._wake = threading.Event()
        wake_on_rejoin(self._coordinator, self._wake.set)
        wake_on_metadata(self._coordinator, self._wake.set)
        back_off_absent_topics(self._coordinator)
        self._rejoin = threading.Event()
        self._backs_off = False
        self._shared_generation = -1
        self._polled_at = time.monotonic()
        self._ending = EndingThread(f"group-member-end-{self._coordinator.group_id}")
        self._thread = threading.Thread(
            target=self._run, name=f"group-member-{self._coordinator.group_id}", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def rejoin(self) -> None:
        """Request a rebalance; during one, request another after it, because its end would drop the request."""
        self._rejoin.set()
        self._wake.set()

    def here(self) -> bool:
        """Whether the call comes from this thread or from the end, which `end` waits for."""
        return threading.current_thread() is self._thread or self._ending.here()

    def end(self, *, leave: bool, also_static: bool = False) -> None:
        """Stop, release all partitions and close the consumer; waits for all of it.

        After Ctrl-C it goes on in its own thread, and another call waits for the rest.

        Args:
            leave: send LeaveGroup.
            also_static: send it also with a group_instance_id.
        """
        self._ending.run(partial(self._end, leave=leave, also_static=also_static))

    def _end(self, *, leave: bool, also_static: bool) -> None:
        self._ended.set()
        self._wake.set()
        self._thread.join()
        with contextlib.suppress(KafkaError, RuntimeError):  # RuntimeError: the event loop has ended
            self._consumer._net.run(self._coordinator._on_close_prepare_async)
            self._consumer._net.run(self._listener.on_leaving)
            if not leave:
                self._coordinator.reset_generation()  # without a member id kafka-python sends no LeaveGroup
        if also_static:
            leave_although_static(self._coordinator)
        with contextlib.suppress(KafkaError, RuntimeError):
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)
        self._cell.change(lambda now: now.outside())
        self._listener.thread.end()

    def _run(self) -> None:
        self._ask_for_topics()
        while self._cell.failed is None and not self._ended.is_set():
            # A join that was sent is finished: no heartbeat is sent before its answer is used. If the program does not
            # poll for longer than a session, the member would be removed, and the group would rebalance again.
            pause_s = self._awake_step()
            # Each attempt to join sets `_wake`: it would end the pause after an error immediately.
            (self._ended if self._backs_off else self._wake).wait(pause_s)
            self._wake.clear()
        self._settle()

    def _awake_step(self) -> float:
        """Take a step; an error of a function of the program, such as `awake`, ends the membership."""
        try:
            awake = self._awake()
            return self._step(take_part=self._coordinator.rejoining or awake)
        except BaseException as error:  # sys.exit() too, which would end this thread alone
            log.exception("group %r: the membership ended", self._coordinator.group_id)
            self._listener.fail(error)
            return 0.0

    def _ask_for_topics(self) -> None:
        """Load the topics before the first join: a leader without topics assigns no partitions, and all must rejoin.

        Two requests are needed unless the first answer has all of the names, because it may belong to a request from
        before the subscription. Only topics that are listed after both are passed to `on_topics`.
        """
        coordinator = self._coordinator
        for _ in range(2):
            if self._names_known():
                return
            self._topics_at = last_metadata_ms(coordinator._cluster)
            # KafkaError: also of a topic that does not exist. RuntimeError: the event loop has ended.
            with contextlib.suppress(KafkaError, RuntimeError), short_backoff(coordinator):
                coordinator._net.run(coordinator._manager.wait_for, coordinator._cluster.request_update(), _TOPICS_MS)

    def _names_known(self) -> bool:
        names = self._coordinator._subscription.subscription
        return bool(names) and set(names) <= set(self._coordinator._cluster.topics(exclude_internal_topics=False))

    def _settle(self) -> None:
        """Finish a rebalance in progress, because during it offsets of released partitions cannot be committed.

        kafka-python commits nothing between a join and its answer, and sees the answer only if it is polled. This also
        holds for a member that was not awake: its program requested the end, and can handle the revocation.
        """
        until = time.monotonic() + _SETTLE_S
        if self._under_way():
            log.info("group %r: the member ends when the rebalance under way is over", self._coordinator.group_id)
        pause_s = 0.0
        while self._under_way() and time.monotonic() < until:
            time.sleep(pause_s)  # not after the step that finishes it: a quiet member then pauses for `quiet_s`
            pause_s = self._step(take_part=True)

    def _under_way(self) -> bool:
        # A refused join leaves kafka-python in a rebalance that no answer ends.
        refused = self._refusals.standing or self._cell.failed is not None
        return not refused and bool(self._coordinator.rebalance_in_progress())

    def _step(self, *, take_part: bool) -> float:
        """Let kafka-python do its due work; return the seconds to pause after it."""
        self._backs_off = False
        try:
            listed = self._list_topics()
            lost = self._session is not None and self._session.reports()
            quiet = self._quiet() and not listed
            if not quiet:
                if take_part and not lost:
                    self._poll()
                self._look()
                quiet = self._quiet() and not listed
        except (KafkaError, MembershipError) as error:
            if isinstance(error, KafkaError) and not self._refusals.ends(error):
                self._refusals.add(error, finding=self._coordinator.coordinator_id is None)
                self._backs_off = True
                return _BACKOFF_S
            self._listener.fail(error)
            quiet = False
        except Exception as error:
            log.exception("group %r: the membership ended", self._coordinator.group_id)
            self._listener.fail(error)
            quiet = False
        return self._quiet_s if quiet else _PAUSE_S

    def _quiet(self) -> bool:
        """Whether a poll has no work: it costs several thread switches, 1 % of a core at 20 polls a second."""
        coordinator = self._coordinator
        return (
            self._cell.value.joined
            and coordinator._heartbeat_enabled  # else a newer member has this group_instance_id, which `_look` reports
            and coordinator._join_task is None
            and not self._rejoin.is_set()
            and not coordinator.need_rejoin()
            and time.monotonic() - self._polled_at < self._quiet_poll_s
        )

    def _poll(self) -> None:
        coordinator, join = self._coordinator, self._coordinator._join_task
        if isinstance(join, _JoinAnswer) and time.monotonic() - self._polled_at > _FRESH_S:
            # After a long time without a poll the group may have continued without this member, because no heartbeat is
            # sent before an answer is used.
            coordinator._join_task = join.answer
        if self._rejoin.is_set() and not coordinator.rejoining:
            self._rejoin.clear()
            coordinator.request_rejoin()
        try:
            coordinator.poll(timeout_ms=_POLL_MS)
        finally:
            self._polled_at = time.monotonic()
            join = coordinator._join_task
            if join is not None:
                coordinator._join_task = _JoinAnswer(join.answer if isinstance(join, _JoinAnswer) else join)

    def _list_topics(self) -> bool:
        """Pass on the existing topics; return whether the brokers have listed them again."""
        cluster = self._coordinator._cluster
        listed_at = last_metadata_ms(cluster)
        if listed_at == self._topics_at:
            return False
        self._topics_at = listed_at
        known = frozenset(cluster.topics(exclude_internal_topics=False))
        self._on_topics(known, frozenset(cluster.unauthorized_topics))
        return True

    def _look(self) -> None:
        """Record generation and member id, which change without a listener call if no partition moves."""
        coordinator = self._coordinator
        generation = coordinator.generation_if_stable()
        if coordinator._generation.is_lost():
            self._cell.change(Ownership.outside)
            return
        if generation is None:
            self._cell.change(lambda now: now.standing(generation=-1, member_id=now.member_id, joined=False))
            return
        if not coordinator._heartbeat_enabled and not coordinator.rejoining and coordinator.stable():
            # The only sign of a fenced instance is that its heartbeats stop.
            raise FencedInstanceIdError(coordinator.group_instance_id)
        self._inform_assignors(coordinator, generation)
        if joined := not coordinator.need_rejoin():
            self._refusals.joined()
        self._cell.change(
            lambda now: now.standing(generation=generation.generation_id, member_id=generation.member_id, joined=joined)
        )

    def _inform_assignors(self, coordinator: Any, generation: Any) -> None:  # noqa: ANN401 - untyped
        """Pass the assignment also to the assignors that the group did not choose.

        kafka-python passes it only to the chosen one. When the group changes to another assignor, that assignor's
        claims would be empty, and a cooperative leader would reassign partitions that their owners still read.
        """
        if generation.generation_id == self._shared_generation:
            return
        self._shared_generation = generation.generation_id
        owned = [(one.topic, one.partition) for one in coordinator._subscription.assigned_partitions()]
        for name, assignor in coordinator._assignors.items():
            if name != generation.protocol:
                assignor.on_assignment(assignment_of(sorted(owned)), generation.generation_id)
