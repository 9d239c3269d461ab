# ruff: noqa: SLF001 - kafka-python's coordinator is inside its consumer
"""The thread that keeps a membership: joins, stays, joins again, and ends."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Self

from kafka import errors as kafka_errors
from kafka.errors import FencedInstanceIdError, KafkaError
from kafka.future import Future

from assignors.member.ownership import Ownership, OwnershipCell
from assignors.member.rebalance_callbacks import RebalanceListener
from assignors.protocol.base_assignor import assignment_of

log = logging.getLogger(__name__)

_POLL_MS: Final = 200
_TOPICS_MS: Final = 2_000
_FRESH_S: Final = 3.0  # half of the shortest session that brokers allow by default
_PAUSE_S: Final = 0.05
_SETTLE_S: Final = 5.0
_BACKOFF_S: Final = 0.5
_CLOSE_MS: Final = 3_000
# What no waiting mends. All other errors of the protocol are tried again: brokers die and come back.
FATAL: Final = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.FencedInstanceIdError,
    kafka_errors.GroupAuthorizationFailedError,
    kafka_errors.GroupMaxSizeReachedError,
    kafka_errors.InconsistentGroupProtocolError,
    kafka_errors.InvalidGroupIdError,
    kafka_errors.InvalidSessionTimeoutError,
    kafka_errors.KafkaConfigurationError,
    kafka_errors.UnsupportedVersionError,
)


class _JoinAnswer(Future):
    """The answer to a join, not there until somebody waits for it.

    kafka-python looks between two polls whether a join is answered, and if so forgets the answer and joins anew: where
    the answer came while nobody polled, the whole group would rebalance a second time.
    """

    def __init__(self, answer: Future) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # kafka-python
        self.answer = answer

    def add_callback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:  # noqa: ANN401 - kafka-python's
        """Somebody waits."""
        super().add_callback(f, *args, **kwargs)  # type: ignore[no-untyped-call]  # as above
        self.answer.add_callback(self.success)
        self.answer.add_errback(self.failure)
        return self


class MemberThread:
    """Drives kafka-python's coordinator, and notes in the cell where the member stands.

    Contract:
    * Errors that waiting can mend end nothing; with another one the listener is told, and the thread ends.
    * While `awake` says no, the member joins no rebalance; one that it has joined is finished.
    * Told to end within a rebalance, it first finishes that one, for 5 s at most, awake or not. One that a slow member
      holds open for longer costs the last commit: records since the one before are delivered again.
    * An answer to a join is taken even where it comes between two polls; the topics are known before the first join.

    Args:
        consumer: kafka-python's, subscribed with the listener.
        listener: told of a failure, and ended with the thread.
        cell: written to after each step.
        awake: asked before each step.
    """

    def __init__(
        self,
        consumer: Any,  # noqa: ANN401 - kafka-python is untyped
        listener: RebalanceListener,
        cell: OwnershipCell,
        awake: Callable[[], bool],
    ) -> None:
        self._consumer = consumer
        self._coordinator = consumer._coordinator
        self._listener = listener
        self._cell = cell
        self._awake = awake
        self._ended = threading.Event()
        self._rejoin = threading.Event()
        self._told_generation = -1
        self._polled_at = time.monotonic()
        self._thread = threading.Thread(
            target=self._run, name=f"group-member-{self._coordinator.group_id}", daemon=True
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def rejoin(self) -> None:
        """Ask for a rebalance; where one is under way, for another after it, whose end would forget what was asked."""
        self._rejoin.set()

    def end(self, *, leave: bool) -> None:
        """Stop, give everything up, close the consumer; waits for all of it.

        Args:
            leave: tell the group.
        """
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(KafkaError, RuntimeError):  # RuntimeError: the event loop has ended
            self._consumer._net.run(self._coordinator._on_close_prepare_async)
            if not leave:
                self._coordinator.reset_generation()  # who has no member id leaves no group
        with contextlib.suppress(KafkaError, RuntimeError):
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)
        self._cell.change(lambda now: now.outside())
        self._listener.thread.end()

    def _run(self) -> None:
        self._ask_for_topics()
        while self._cell.failed is None and not self._ended.is_set():
            # A join that was sent is seen through: no heartbeat is sent before its answer is taken, and a program that
            # asks for nothing for longer than a session would cost its member the group, and the group one more round.
            self._ended.wait(self._step(take_part=self._coordinator.rejoining or self._awake()))
        self._settle()

    def _ask_for_topics(self) -> None:
        """Know the topics before the first join: a leader that knows none gives nothing, and all have to join again.

        Asked twice, because the first answer may be that to a question of before the subscription.
        """
        coordinator = self._coordinator
        with contextlib.suppress(KafkaError, RuntimeError):  # RuntimeError: the event loop has ended
            for _ in range(2):
                coordinator._net.run(coordinator._manager.wait_for, coordinator._cluster.request_update(), _TOPICS_MS)

    def _settle(self) -> None:
        """Finish a rebalance that is under way: within one, what is given up at the end cannot be committed.

        kafka-python commits nothing between a join and its answer, and sees the answer only where it is polled. Also
        of a member that was not awake: its program asks for the end, and is there for what is given up.
        """
        until = time.monotonic() + _SETTLE_S
        if self._under_way():
            log.info("group %r: told to end within a rebalance, which is finished first", self._coordinator.group_id)
        while self._under_way() and time.monotonic() < until:
            time.sleep(self._step(take_part=True))

    def _under_way(self) -> bool:
        return self._cell.failed is None and bool(self._coordinator.rebalance_in_progress())

    def _step(self, *, take_part: bool) -> float:
        """Let kafka-python do what is due; returns the seconds to pause after it."""
        try:
            if take_part:
                self._poll()
            self._look()
        except FATAL as error:
            self._listener.fail(error)
        except KafkaError as error:
            log.warning("group %r: %r, trying again", self._coordinator.group_id, error)
            return _BACKOFF_S
        except Exception as error:
            log.exception("group %r: the membership ended", self._coordinator.group_id)
            self._listener.fail(error)
        return _PAUSE_S

    def _poll(self) -> None:
        coordinator, join = self._coordinator, self._coordinator._join_task
        if isinstance(join, _JoinAnswer) and time.monotonic() - self._polled_at > _FRESH_S:
            # Nobody polled for long, and no heartbeat is sent before an answer is taken: the group may have gone on.
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

    def _look(self) -> None:
        """Note the standing in the group, which changes without a listener's call where no partition moves."""
        coordinator = self._coordinator
        generation = coordinator.generation_if_stable()
        if coordinator._generation.is_lost():
            self._cell.change(Ownership.outside)
            return
        if generation is None:
            self._cell.change(lambda now: now.standing(generation=-1, member_id=now.member_id, joined=False))
            return
        if not coordinator._heartbeat_enabled and not coordinator.rejoining and coordinator.stable():
            # A fenced instance's heartbeats stop, and nothing else tells of it.
            raise FencedInstanceIdError(coordinator.group_instance_id)
        self._tell_assignors(coordinator, generation)
        joined = not coordinator.need_rejoin()
        self._cell.change(
            lambda now: now.standing(generation=generation.generation_id, member_id=generation.member_id, joined=joined)
        )

    def _tell_assignors(self, coordinator: Any, generation: Any) -> None:  # noqa: ANN401 - untyped
        """Let the assignors that were not chosen know too what is owned.

        kafka-python tells only the chosen one. When the group changes to another one, its claims would be empty, and a
        cooperative leader would give partitions away that their owners still read.
        """
        if generation.generation_id == self._told_generation:
            return
        self._told_generation = generation.generation_id
        owned = [(one.topic, one.partition) for one in coordinator._subscription.assigned_partitions()]
        for name, assignor in coordinator._assignors.items():
            if name != generation.protocol:
                assignor.on_assignment(assignment_of(sorted(owned)), generation.generation_id)
