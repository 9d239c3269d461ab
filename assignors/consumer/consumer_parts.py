"""The parts of a `GroupConsumer`, in one object: an attribute of a subclass cannot replace one of them."""

import operator
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol

from assignors.clients.librdkafka_values import text
from assignors.consumer import split_configuration
from assignors.consumer.cancelled_reads import AwaitedTake
from assignors.consumer.chosen_assignors import assignors_with_rack
from assignors.consumer.client_callbacks import OwnedCallbacks
from assignors.consumer.commit_queue import CommitQueue, CommitTimeout
from assignors.consumer.consumed_offsets import Progress, kafka_partitions, key_of, offset_of
from assignors.consumer.consumer_errors import ArgumentError, ConsumerError
from assignors.consumer.dropped_or_forked import leave_when_dropped, lifetime, refuse_after_fork
from assignors.consumer.error_messages import TopicErrors
from assignors.consumer.fetching import Fetching
from assignors.consumer.group_statistics import GroupStatistics
from assignors.consumer.interruptions import PendingSteps
from assignors.consumer.one_thread_at_a_time import CallGate
from assignors.consumer.program_callbacks import ProgramCallbacks
from assignors.consumer.rebalance_handling import Membership
from assignors.consumer.received_bytes import ReceivedBytes
from assignors.consumer.record_steps import RecordSteps

_FOREVER_S: Final = 1e9
_MOST_MESSAGES: Final = 1_000_000


class ConsumerParts:
    """What the methods of a `GroupConsumer` use.

    Only the consumer refers to it, and it does not keep the consumer alive.

    Args:
        consumer: the first argument of the program's callbacks.
        settings: librdkafka's properties and callbacks.
        assignors: as for `GroupConsumer`.
        member: as for `GroupConsumer`.

    Attributes:
        is_eager: whether the assignors are eager, of a member in the classic protocol.

    Raises:
        ConsumerError, KafkaException, TypeError, ValueError: as `GroupConsumer`.
    """

    __slots__ = (
        "_commit_timeout",
        "_dropped",
        "_lifetime",
        "ahead",
        "callbacks",
        "closing",
        "commits",
        "config",
        "fetching",
        "gate",
        "is_eager",
        "left",
        "membership",
        "program",
        "progress",
        "quick",
        "received",
        "steps",
    )

    def __init__(
        self,
        consumer: object,
        settings: Mapping[str, Any],
        *,
        assignors: Sequence[AbstractPartitionAssignor] | None,
        member: Mapping[str, Any],
    ) -> None:
        self.callbacks = OwnedCallbacks(settings)
        self.config = split_configuration.read(self.callbacks.weakly(), member)
        if self.config.broker_assigned is not None and assignors:
            raise ArgumentError("assignors=[...]: with group.protocol=consumer the broker assigns, leave them out")
        self.program = ProgramCallbacks(consumer)
        self.gate = CallGate()
        self.received = ReceivedBytes(self.config.fetching)
        self.fetching = Fetching(self.received.with_callback())
        self.ahead, self.left = self.fetching.ahead, self.fetching.in_hand.left
        self.progress = Progress(self.fetching, auto_store=self.config.auto_store)
        self._commit_timeout = CommitTimeout()
        self.commits = CommitQueue(self.config.on_commit, self._commit_timeout, self.ahead.interrupt, kafka_partitions)
        self.fetching.callbacks.on_answer = partial(_note_answer, self.commits)
        chosen = assignors_with_rack(assignors, self.config.member.get("client_rack"))
        eager = any(RebalanceProtocol.EAGER in one.supported_protocols() for one in chosen)
        self.is_eager = eager and self.config.broker_assigned is None
        topic_errors = TopicErrors(self.ahead.interrupt, eager=self.is_eager)
        self.membership = Membership(
            self.config,
            assignors=chosen,
            fetching=self.fetching,
            progress=self.progress,
            commits=self.commits,
            topic_errors=topic_errors,
            call_program=self.program.weakly(),
            running=self.program.running,
        )
        self.received.complete = GroupStatistics(
            self.fetching,
            self.progress,
            self.commits,
            self.membership,
            text(self.config.fetching.get("isolation.level")),
        ).complete
        self.steps = RecordSteps(
            self.config,
            gate=self.gate,
            fetching=self.fetching,
            membership=self.membership,
            topic_errors=topic_errors,
            commits=self.commits,
            callbacks=self.program,
        )
        self.closing: PendingSteps | None = None
        self.quick = self.steps.quick.take
        self._lifetime = lifetime()
        self._dropped: weakref.finalize[Any, Any] = leave_when_dropped(
            self._lifetime, self.membership, self.commits, self.fetching
        )
        refuse_after_fork(self.fetching)

    def check_usable(self) -> None:
        """Raise ConsumerError after close() or a fork.

        A call checks it before its arguments, and again inside the gate: it may have waited there for another thread's
        close(), after which nothing would end what it begins.
        """
        self.gate.check_process()
        self.membership.check_open()

    def check_count(self, num_messages: int) -> None:
        """Raise ArgumentError unless the argument of `consume` is from 0 to 1,000,000."""
        if not 0 <= operator.index(num_messages) <= _MOST_MESSAGES:
            self.check_usable()  # a closed consumer is the first error to report
            raise ArgumentError(f"consume({num_messages!r}): need 0 to 1000000 messages")

    def until(self, call: str, timeout: float, now: float) -> float:
        """Return the time at which a call ends.

        Raises:
            ConsumerError: the timeout is not a number. Or it has no limit, and there is no subscription: the call would
                wait forever.
        """
        if timeout >= 0:
            return now + float(timeout)  # of a Decimal, too
        if not timeout < 0:
            raise ArgumentError(f"{call}: timeout={timeout!r}, need a number of seconds")
        self.check_usable()
        if self.membership.member is None:
            raise ConsumerError(f"{call} without a timeout would wait forever: call subscribe() first")
        return now + _FOREVER_S

    def redeliver_left(self) -> None:
        """Let the next call deliver the records of an interrupted one again; the next step does it if this is, too."""
        if any(self.left):
            with self.gate.turn():
                self.fetching.redeliver_left()

    def awaited_take(self, most: int, timeout: float) -> AwaitedTake:
        """Return a call of `consume` whose task may be cancelled, for `AIOGroupConsumer`.

        Raises:
            ArgumentError: `most` is not from 0 to 1,000,000.
        """
        self.check_usable()
        self.check_count(most)

        def take(found: list[Message], given_up: Callable[[], bool]) -> None:
            until, done = self.until("consume()", timeout, time.monotonic()), False
            while not done:
                _, done = self.steps.consume(found.extend, len(found), most, until, given_up)

        return AwaitedTake(self.fetching, self.gate, take)

    @property
    def closed(self) -> bool:
        """Whether `close` has done all."""
        return self.closing is not None and not self.closing

    def close(self, consumer: object) -> None:
        """Close all parts, or what an interrupted call has left; raise the first error of a callback at the end."""
        with self.gate.turn():
            self.program.refuse("close()")
            self.ahead.interrupt()
            if self.closing is None:
                self.program.hold(consumer)
                self.callbacks.hold()
                self.membership.call_program_with(self.program.call)
                self._commit_timeout.begin_closing()
                self.closing = PendingSteps(
                    [
                        self.membership.close,
                        self.commits.close,
                        self.steps.report_last_commits,
                        self.fetching.close,
                        self.fetching.callbacks.raise_caught,
                        self._dropped.detach,
                        self.callbacks.let_go,
                        self.program.let_go,
                    ]
                )
            self.closing.finish()


def _note_answer(commits: CommitQueue, error: KafkaError | None, partitions: list[KafkaPartition]) -> None:
    """Record an answer that librdkafka passes to `on_commit`; partitions without an offset were not sent."""
    refused = {key_of(one) for one in partitions if error is not None or one.error is not None}
    commits.note_answer({key_of(one): offset_of(one) for one in partitions if one.offset >= 0}, refused)
