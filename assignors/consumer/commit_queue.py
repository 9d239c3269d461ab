"""Commits in the order of their calls; commits that wait for a slow coordinator are merged into one request."""

import itertools
import queue
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError

from assignors.clients.log_offsets import Offset
from assignors.consumer.background_calls import Answer, BackgroundCalls
from assignors.consumer.consumer_errors import ConsumerError, consumer_error
from assignors.consumer.interruptions import Once
from assignors.consumer.known_group_offsets import GroupOffsets, Offsets
from assignors.consumer.one_process import OneProcess
from assignors.errors import MembershipError, NotOwnedError
from assignors.member.ownership import Ownership
from assignors.planner.topics_and_members import TopicPartition

OnCommit = Callable[[ConsumerError | None, Any], object]


_COMMIT_S: Final = 20.0
# Brokers need their session timeout, 9 s by default, to replace a dead coordinator. With a shorter limit the last
# offsets would not be committed, and their records would be delivered twice.
_CLOSING_S: Final = 20.0
_LONGER_S: Final = 20.0  # a request may end this long after its time limit


# A broker answers each of these for some partitions of a request, and commits the others.
_OF_A_PARTITION: Final = frozenset(
    {
        KafkaError.INVALID_COMMIT_OFFSET_SIZE,
        KafkaError.OFFSET_METADATA_TOO_LARGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


class CommitTimeout:
    """Time limit of a commit in seconds: shorter while the consumer closes, so that close() ends without brokers."""

    def __init__(self) -> None:
        self._until: float | None = None

    def __call__(self) -> float:
        """Return the seconds for a request that is sent now."""
        return _COMMIT_S if self._until is None else max(0.0, self._until - time.monotonic())

    def begin_closing(self) -> None:
        """Set one common time limit for all commits from now on."""
        self._until = time.monotonic() + _CLOSING_S


class Committer(Protocol):
    """The part of `GroupMember` that commits."""

    def commit(self, offsets: Offsets, timeout_s: float) -> None:
        """Commit, fenced by the generation; raise MembershipError if that fails."""

    def ownership(self) -> Ownership:
        """Return the current ownership of the member."""


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    member: Committer
    offsets: Offsets
    without_offset: Offsets = field(default_factory=dict)
    progress: bool = False
    answer: Answer[None] = field(default_factory=Answer)
    report: Once = field(default_factory=Once)


class CommitQueue(GroupOffsets):
    """A thread that commits.

    Contract:
    * An older call never overwrites the offsets of a newer one.
    * At most one request is in flight. Calls during that time are merged into the next one, with the newest call's
      offset for each partition: any number of commits is answered after two round trips.
    * Progress that is committed already is answered without a request, as long as the member owns the partitions.
    * If a call names a partition of another member, or a partition that the broker refuses, only the calls with this
      partition fail; the calls merged with them are sent without them.
    * `wait_until_answered` is called before a revocation is acknowledged, so no commit follows the revocation.
    * `report` calls `on_commit` for each asynchronous call, in the thread of its caller.
    * An interruption of the caller skips no answer and leaves no lock locked.

    Args:
        on_commit: called with the error or None, and the offsets of the call.
        timeout_s: time limit of a request that is sent now.
        notify: called from the thread after each answer.
        shown: converts the offsets of a call for `on_commit`.
    """

    def __init__(
        self,
        on_commit: OnCommit | None,
        timeout_s: Callable[[], float],
        notify: Callable[[], object] = lambda: None,
        shown: Callable[[Offsets], Any] = lambda offsets: offsets,
    ) -> None:
        super().__init__()
        self._on_commit = on_commit
        self._shown = shown
        self._timeout_s = timeout_s
        self._notify = notify
        self._thread: Final = BackgroundCalls("group-commits")
        self._unsent: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        self._unreported: deque[_Request] = deque()

    def commit(self, member: Committer, offsets: Offsets, *, progress: bool = False) -> None:
        """Commit, and wait for the answer.

        Args:
            member: of the group.
            offsets: to commit.
            progress: whether these are the program's progress, not offsets that it names.

        Raises:
            ConsumerError: the offsets were not committed.
        """
        request = _Request(member, offsets, progress=progress)
        self._thread.put(self._send_unsent, (self._unsent.put, request))
        request.answer.result()

    def commit_later(
        self, member: Committer, offsets: Offsets, without_offset: Offsets | None = None, *, progress: bool = False
    ) -> None:
        """Commit without waiting for the answer.

        Args:
            member: of the group.
            offsets: may be empty; `on_commit` is then called with librdkafka's error for that.
            without_offset: partitions that the call names without an offset to commit; `on_commit` gets them, too.
            progress: as in `commit`.
        """
        request = _Request(member, offsets, without_offset or {}, progress)
        self._thread.put(self._send_unsent, (self._unreported.append, request), (self._unsent.put, request))

    def wait_until_answered(self) -> None:
        """Wait for the answers to all calls so far."""
        answered: Answer[None] = Answer()
        self._thread.put(lambda: answered.give(None))
        answered.result()

    @property
    def reportable(self) -> bool:
        """Whether `report` has an answer to pass on."""
        return bool(self._unreported) and self._unreported[0].answer.done

    def report(self) -> list[tuple[ConsumerError, Offsets]]:
        """Call `on_commit` for each answered call; without it, return the calls that failed.

        Raises:
            Exception: a call ended with another error than a ConsumerError; the other calls stay reportable.
        """
        failed: list[tuple[ConsumerError, Offsets]] = []
        while self._unreported and (request := self._unreported[0]).answer.done:
            error = request.answer.error
            if error is not None and not isinstance(error, ConsumerError):
                self._unreported.popleft()
                raise error
            if self._on_commit is not None:
                process = OneProcess()
                request.report.call(self._on_commit, error, self._shown({**request.offsets, **request.without_offset}))
                process.check()
            elif error is not None and request.offsets:
                failed.append((error, request.offsets))
            if self._unreported and self._unreported[0] is request:  # else a close() in on_commit has removed it
                self._unreported.popleft()
        return failed

    def close(self) -> None:
        """Wait for all answers, and end the thread.

        Raises:
            ConsumerError: a request has not ended in time.
        """
        if not self._thread.end(limit_s := self._timeout_s() + _LONGER_S):
            raise ConsumerError(
                f"a commit has not ended for {limit_s:.0f} s, and close() leaves it: its offsets may not be committed"
            )

    def _send_unsent(self) -> None:
        requests = list(self._take_unsent())
        for _, of_member in itertools.groupby(requests, key=lambda one: id(one.member)):
            self._send(list(of_member))
        if requests:
            self._notify()

    def _take_unsent(self) -> Iterator[_Request]:
        while not self._unsent.empty():  # only this thread takes them
            yield self._unsent.get()

    def _send(self, requests: Sequence[_Request]) -> None:
        for one in requests:
            if not one.offsets:
                one.answer.fail(ConsumerError("Local: No offset stored", KafkaError._NO_OFFSET))  # noqa: SLF001 -- librdkafka's own code
        if requests := [one for one in requests if one.offsets]:
            self._send_merged(requests)

    def _send_merged(self, requests: Sequence[_Request]) -> None:
        merged: dict[TopicPartition, Offset] = {}
        for one in requests:
            done = self._done(one)
            merged.update({key: at for key, at in one.offsets.items() if key in merged or key not in done})
        error = self._answer(requests[0].member, merged)
        if isinstance(error, NotOwnedError) and len(requests) > 1:
            self._send_apart(requests)
            return
        by_partitions = _by_partitions(requests)
        if len(by_partitions) > 1 and isinstance(error, ConsumerError) and error.code() in _OF_A_PARTITION:
            # The newest offsets, so that no older call overwrites those of a newer one.
            for same in by_partitions:
                newest = {key: merged[key] for key in same[0].offsets if key in merged}
                self._give(same, self._answer(same[0].member, newest))
            return
        self._give(requests, error)

    def _answer(self, member: Committer, offsets: Offsets) -> BaseException | None:
        """Send one request; return its error."""
        error: BaseException | None = None
        try:
            if offsets:
                member.commit(offsets, self._timeout_s())
        except MembershipError as refused:
            error = consumer_error(refused)
        except BaseException as unexpected:  # noqa: BLE001 -- raised where the answer is read
            error = unexpected
        if error is None:
            self.note(offsets)
            self.note_accepted(offsets)
        else:  # the coordinator may have stored these, although its answer was lost
            self.commit_again(offsets)
        return error

    def _give(self, requests: Sequence[_Request], error: BaseException | None) -> None:
        for one in requests:
            if error is None:
                one.answer.give(None)
            else:
                one.answer.fail(error)

    def _done(self, request: _Request) -> Collection[TopicPartition]:
        """The partitions of a request that need no commit.

        A second commit would harm: if the topic was deleted and recreated, the group would get an offset of the deleted
        topic, and a restarted program would begin there and skip the records before it.
        """
        if not request.progress or not request.offsets.keys() <= request.member.ownership().partitions:
            return ()
        return request.offsets.keys() - self.uncommitted(request.offsets).keys()

    def _send_apart(self, requests: Sequence[_Request]) -> None:
        """Merge the calls whose partitions are all owned; refuse the other calls without a request."""
        owned = requests[0].member.ownership().partitions
        accepted = [one for one in requests if one.offsets.keys() <= owned]
        if 0 < len(accepted) < len(requests):
            self._send(accepted)
        for one in requests:
            if len(accepted) in {0, len(requests)} or not one.offsets.keys() <= owned:
                self._send([one])


def _by_partitions(requests: Sequence[_Request]) -> list[list[_Request]]:
    """Group the calls by their partitions, in order. An error of a partition concerns all calls of a group or none."""
    found: dict[frozenset[TopicPartition], list[_Request]] = {}
    for one in requests:
        found.setdefault(frozenset(one.offsets), []).append(one)
    return list(found.values())
