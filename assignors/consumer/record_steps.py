"""The steps of `poll` and `consume`: other work that is due, then records."""

import logging
import math
import time
from collections.abc import Callable, Iterator
from typing import Final

from confluent_kafka import KafkaError, Message

from assignors.consumer.commit_queue import CommitQueue
from assignors.consumer.error_messages import TopicErrors
from assignors.consumer.fetching import Fetching
from assignors.consumer.one_process import OneProcess
from assignors.consumer.one_thread_at_a_time import CallGate
from assignors.consumer.program_callbacks import ProgramCallbacks
from assignors.consumer.quick_step import TAKES_RECORDS, QuickStep
from assignors.consumer.rebalance_handling import Membership
from assignors.consumer.split_configuration import Configuration

log = logging.getLogger(__name__)

# Longest wait for records in one step. A rebalance waits for the end of the step, so only an idle program takes longer
# ones.
_STEP_S: Final = 0.05
_IDLE_STEP_S: Final = 0.3
_IDLE_AFTER_S: Final = 2.0
_READ_AHEAD: Final = 500
# Of many records the first ones have left the processor's cache when the program gets them, and the next ones are made
# in memory that is not in it either: with 2,000 records a call for 1,000 takes 10 % more time. With 200 records the
# step itself takes 4 % of the time of calls for 100. A step in Python takes 20 us, so it pays only with more records.
_READ_AHEAD_BATCHES: Final = 500 if TAKES_RECORDS else 1_000
# Lists of one record are made by QuickStep; without it one list of many records costs less than many lists of one.
_LEAST_BATCH: Final = 1 if TAKES_RECORDS else 2
_NO_WAIT: Final = (0.0,)
_LISTEN_S: Final = 0.2


def _never() -> bool:
    return False


class RecordSteps:
    """One call takes one step after the other, until it has records or its time is up.

    Contract:
    * A step holds the gate: rebalances, commits and calls of other threads are handled between steps.
    * A step handles rebalances before it takes records, and none after the first record of a call: a record is
      delivered before its partition is revoked.
    * Each step counts as a poll for max.poll.interval.ms.
    * A program that works slowly on records that were read ahead still gets its callbacks: its clock
      interrupts it every few seconds.

    Args:
        config: the consumer's.
        gate: held by each step.
        fetching: the source of the records.
        membership: its changes are handled by the steps.
        topic_errors: returned before records.
        commits: their answers are passed to the program.
        callbacks: a step is refused while one of them runs.
    """

    def __init__(  # noqa: PLR0913 -- the parts of a consumer, each named at the call
        self,
        config: Configuration,
        *,
        gate: CallGate,
        fetching: Fetching,
        membership: Membership,
        topic_errors: TopicErrors,
        commits: CommitQueue,
        callbacks: ProgramCallbacks,
    ) -> None:
        self._config = config
        self._gate = gate
        self._fetching = fetching
        self._ahead = fetching.ahead
        self._membership = membership
        self._topic_errors = topic_errors
        self._commits = commits
        self._callbacks = callbacks
        self._commit_s = math.inf if config.auto_commit_s is None else config.auto_commit_s
        self._commit_at = time.monotonic() + self._commit_s
        self._delivered_at = time.monotonic()
        self._listened_at = 0.0
        self.quick: Final = QuickStep(
            gate.readiness,
            gate.lock,
            fetching,
            membership.owned,
            most_pause_s=min(config.max_poll_s, _IDLE_AFTER_S),
            wait_s=_STEP_S,
            least=_READ_AHEAD_BATCHES,
        )

    def poll(self, until: float) -> bool:
        """Read records ahead; return whether there are some, or the time is up."""
        with self._gate.step():
            self._callbacks.refuse("poll()")
            now = time.monotonic()
            self._serve_if_due(now)
            self._ahead.join_batches()
            self._read_ahead(now)
            if not self._ahead.left():
                self._fetching.read_ahead(1, self._waits_s(now, until), self._membership.owned)
            if self._ahead.left():
                self._delivered_at = now
                return True
            self._fetching.callbacks.raise_caught()
            return time.monotonic() >= until

    def consume(
        self,
        add: Callable[[list[Message]], object],
        had: int,
        most: int,
        until: float,
        given_up: Callable[[], bool] = _never,
    ) -> tuple[int, bool]:
        """Add a list of records to the `had` ones of the call; return how many it has, and whether it is complete.

        The list is added in the step itself: a signal at its end would lose what it returns. `given_up` returns whether
        the task of the call was cancelled.
        """
        with self._gate.step():
            if given_up():  # while it waited for the gate
                return had, True
            self._callbacks.refuse("consume()")
            if had and self._membership.closed:  # close() in another thread committed these as delivered
                return had, True
            now = time.monotonic()
            # Rebalances are handled only before records are taken: a record is delivered before its revocation.
            if not had:
                self._serve_if_due(now)
                if not self.quick.takes(most):
                    self._read_ahead(now, most)
            found = self._ahead.next_batch() if not had and self._ahead.batch_size == most else []
            if found or (
                found := self._fetching.take(most - had, self._waits_s(now, until, given_up), self._membership.owned)
            ):
                add(found)
                self._delivered_at = now
            had += len(found)
            if not had:
                self._fetching.callbacks.raise_caught()
            other_work = bool(had) and (self._membership.changes or self._fetching.callbacks.call())
            if had >= most and not other_work:
                self.quick.arm(most, now, self._commit_at)
            return had, had >= most or other_work or time.monotonic() >= until

    def _read_ahead(self, now: float, most: int = 0) -> None:
        """Fetch many available records at once, for this call and later ones that need the same number."""
        fewest = self._fetching.fewest_ahead
        ahead, count = max(_READ_AHEAD, fewest), 0
        if most >= _LEAST_BATCH:
            count = max(_READ_AHEAD_BATCHES, 2 * most if most <= _READ_AHEAD_BATCHES else 0, fewest) // most
        if (count < 2 and most >= ahead) or self._idle(now) or self._ahead.left():  # noqa: PLR2004 -- a batch is at most what the call itself fetches
            return
        if count > 1:
            self._fetching.read_batches(most, count, self._membership.owned)
        else:
            self._fetching.read_ahead(ahead, _NO_WAIT, self._membership.owned)

    def _waits_s(self, now: float, until: float, given_up: Callable[[], bool] = _never) -> Iterator[float]:
        """Yield the waits of the steps, until the time is up, or this or another thread has work.

        An idle program runs only these steps, so they wake up only 3 times a second.
        """
        if now < self._commit_at < until:
            until = self._commit_at
        # A task that gives up a call interrupts it, and this step may have cleared the interruption already.
        yield 0.0 if self._membership.changes or given_up() else self._step_s(now, until)
        if given_up():
            return
        while (now := time.monotonic()) < until and not (self._ahead.interrupted or self._gate.waited_for):
            self._ahead.polled()
            yield self._step_s(now, until)

    def _step_s(self, now: float, until: float) -> float:
        longest_s = _IDLE_STEP_S if self._idle(now) else _STEP_S
        # librdkafka drops a fraction of a millisecond: the last millisecond would pass in hundreds of waits of 0 ms.
        return math.ceil(1000 * max(0.0, min(longest_s, until - now))) / 1000

    def _idle(self, now: float) -> bool:
        return now - max(self._delivered_at, self.quick.delivered_at) > _IDLE_AFTER_S

    def _serve_if_due(self, now: float) -> None:
        ahead = self._ahead
        if ahead.interrupted or now >= self._commit_at or now - ahead.polled_at > self._config.max_poll_s:
            self._serve(now)
        else:
            ahead.polled_at = now

    def _serve(self, now: float) -> None:
        self._membership.check_open()
        if self._membership.member is None:
            self.report_commits()  # of the last one before the member left
            return
        late_s = self._ahead.idle_s() - self._config.max_poll_s
        if late_s > 0 and not self._membership.by_hand:
            self._topic_errors.add(_poll_exceeded(self._config.max_poll_s, late_s))
        self._ahead.polled()
        self.commit_if_due(now)
        if self._ahead.interrupted:
            self._serve_interruption(now)

    def commit_if_due(self, now: float) -> None:
        """Begin an automatic commit if its interval is over; does not wait."""
        if now >= self._commit_at:
            self._commit_at = now + self._commit_s
            self._membership.commit_progress()

    def _serve_interruption(self, now: float) -> None:
        """Handle all requests of other threads, then raise the error of a callback if there is one."""
        self._ahead.interrupted = False  # cleared before the reasons are checked, so a later reason sets it again
        try:
            self._fetching.redeliver_left()
            self._membership.rebalance()
            self.report_commits()
            self._membership.rejoin_if_ended()
        except BaseException:
            self._ahead.interrupted = True  # the next call does the rest; a call here could be interrupted, too
            raise
        self._fetching.check_ahead(self._membership.owned())
        if self._fetching.callbacks.listens and self._ahead.left() and now - self._listened_at > _LISTEN_S:
            self._listened_at = now
            self._fetching.listen(self._membership.owned)
        if errors := self._topic_errors.take():
            self._ahead.put_first(errors)
        self._fetching.callbacks.raise_caught()
        self._membership.check_open()  # a callback may have closed the consumer

    def report_commits(self) -> None:
        """Pass the answers to commits to the program, and without `on_commit` log those that failed."""
        for error, offsets in self._commits.report():
            log.warning("a commit of %d offsets failed: %s", len(offsets), error)

    def report_last_commits(self) -> None:
        """As `report_commits`, and go on after an `on_commit` that raises; raise the first error at the end."""
        raised: list[BaseException] = []
        process = OneProcess()
        while self._commits.reportable:
            try:
                self.report_commits()
            except BaseException as error:  # raised below
                if process.forked:
                    raise
                raised.append(error)
        if raised:
            raise raised[0]


def _poll_exceeded(limit_s: float, late_s: float) -> Message:
    text = f"Application maximum poll interval ({limit_s * 1000:.0f}ms) exceeded by {late_s * 1000:.0f}ms"
    code = KafkaError._MAX_POLL_EXCEEDED  # noqa: SLF001 -- librdkafka's own code
    return Message(value=text.encode(), error=KafkaError(code, text))
