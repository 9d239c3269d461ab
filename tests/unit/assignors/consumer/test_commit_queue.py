"""Commits in the order of their calls, merged while a request is in flight."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import OffsetMetadataTooLargeError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError

from assignors import FencedError, MembershipError, NotOwnedError, Ownership
from assignors.clients import Offset
from assignors.clients.log_offsets import OffsetWithMetadata
from assignors.consumer.commit_queue import CommitQueue, CommitTimeout
from assignors.consumer.known_group_offsets import Offsets
from assignors.planner.topics_and_members import TopicPartition

OFFSETS = {("t", 0): 1}


class Coordinator:
    """A member whose commits are answered when the test says so."""

    def __init__(self, refuse: Callable[[Offsets], Exception | None] = lambda _: None) -> None:
        self.requests: list[dict[TopicPartition, Offset]] = []
        self.go = threading.Event()
        self.reached = threading.Event()
        self._refuse = refuse

    def commit(self, offsets: Offsets, timeout_s: float) -> None:
        """As a member: one request."""
        assert timeout_s > 0
        self.reached.set()
        assert self.go.wait(10)
        if error := self._refuse(offsets):
            raise error
        self.requests.append(dict(offsets))

    def ownership(self) -> Ownership:
        """Partitions of only the topic t."""
        return Ownership().plus([("t", n) for n in range(3)], 1)


def queue(reports: list[tuple[object, Offsets]] | None = None) -> CommitQueue:
    """A queue that notes its reports."""

    def note(error: object, offsets: Offsets) -> None:
        assert reports is not None
        reports.append((error, offsets))

    return CommitQueue(None if reports is None else note, CommitTimeout())


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30))
def test_many_commits_take_two_requests_and_the_newest_call_counts(calls: list[tuple[int, int]]) -> None:
    """450 commits at 50 ms per round trip delayed close() and each revocation by 27 s."""
    reports: list[tuple[object, Offsets]] = []
    member, commits = Coordinator(), queue(reports)
    commits.commit_later(member, OFFSETS)
    assert member.reached.wait(10)
    for partition, offset in calls:
        commits.commit_later(member, {("t", partition): offset})
    member.go.set()
    commits.wait_until_answered()
    commits.close()
    newest = {("t", partition): offset for partition, offset in calls}
    assert member.requests == [OFFSETS, *([newest] if calls else [])]
    assert commits.report() == []
    assert reports == [(None, OFFSETS), *((None, {("t", partition): offset}) for partition, offset in calls)]


def test_a_commit_that_waits_comes_after_those_before_it() -> None:
    """Its offset is the newest: an older one never replaces it."""
    member, commits = Coordinator(), queue()
    commits.commit_later(member, {("t", 0): 5})
    commits.commit_later(member, {("t", 0): 6})
    member.go.set()
    commits.commit(member, {("t", 0): 3})
    assert member.requests[-1] == {("t", 0): 3}
    commits.close()


def test_a_refused_call_does_not_spoil_those_merged_with_it() -> None:
    """A call with another member's partition: only this call fails, and its error reaches on_commit."""
    member = Coordinator(lambda offsets: NotOwnedError() if ("u", 0) in offsets else None)
    reports: list[tuple[object, Offsets]] = []
    commits = queue(reports)
    commits.commit_later(member, OFFSETS)
    assert member.reached.wait(10)
    for key in (("t", 1), ("u", 0), ("t", 2)):
        commits.commit_later(member, {key: 7})
    member.go.set()
    commits.close()
    commits.report()
    assert member.requests == [OFFSETS, {("t", 1): 7, ("t", 2): 7}]
    assert [error is not None for error, _ in reports] == [False, False, True, False]


@pytest.mark.parametrize(
    "why", [TopicAuthorizationFailedError, OffsetMetadataTooLargeError, UnknownTopicOrPartitionError]
)
def test_a_partition_that_the_broker_refuses_fails_only_the_calls_with_it(why: type[Exception]) -> None:
    """The others were reported as failed, too. Calls with the same partitions still take one request."""

    def refuse(offsets: Offsets) -> Exception | None:
        if ("t", 0) not in offsets or offsets == OFFSETS:
            return None
        refused = MembershipError("no")
        refused.__cause__ = why()
        return refused

    member, reports = Coordinator(refuse), list[tuple[Any, Offsets]]()
    commits = queue(reports)
    commits.commit_later(member, OFFSETS)
    assert member.reached.wait(10)
    calls: list[dict[TopicPartition, int]] = [{("t", 1): 5}, {("t", 0): 6, ("t", 1): 6}, {("t", 1): 7}, {("t", 2): 7}]
    for call in [*calls, {("t", 0): 8, ("t", 1): 8}]:
        commits.commit_later(member, call)
    member.go.set()
    commits.close()
    commits.report()
    assert [error and error.code() for error, _ in reports] == [None, None, why.errno, None, None, why.errno]  # type: ignore[attr-defined]  # kafka-python is untyped
    assert member.requests == [OFFSETS, {("t", 1): 8}, {("t", 2): 7}]


def test_failures_without_on_commit_are_handed_back() -> None:
    """They are not swallowed; a synchronous one raises, also as confluent-kafka's exception."""
    commits, member = queue(), Coordinator(lambda _: FencedError("gone"))
    member.go.set()
    commits.commit_later(member, OFFSETS)
    commits.wait_until_answered()
    ((error, offsets),) = commits.report()
    assert isinstance(error, FencedError)
    assert offsets == OFFSETS
    with pytest.raises(FencedError, match="gone"):
        commits.commit(member, OFFSETS)
    commits.close()


def test_all_commits_of_a_close_share_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without brokers each would wait for 20 s, and close() for all of them."""
    now = 100.0
    monkeypatch.setattr("assignors.consumer.commit_queue.time.monotonic", lambda: now)
    timeout = CommitTimeout()
    assert timeout() == 20
    timeout.begin_closing()
    assert timeout() == 20
    now += 15
    assert timeout() == 5


def test_only_an_answered_commit_need_not_be_repeated() -> None:
    """A refused one must be, also the offsets of a partition that another member had in between."""
    refused: list[Exception | None] = [FencedError("gone"), None]
    member, commits = Coordinator(lambda _: refused.pop(0)), queue()
    member.go.set()
    for left in (OFFSETS, {}):
        commits.commit_later(member, OFFSETS)
        commits.wait_until_answered()
        assert commits.uncommitted(OFFSETS) == left
    assert commits.uncommitted({("t", 0): 2, ("t", 1): 1}) == {("t", 0): 2, ("t", 1): 1}
    commits.forget([("t", 0)])
    assert commits.uncommitted(OFFSETS) == OFFSETS
    commits.close()


def test_progress_that_is_committed_is_not_sent_again() -> None:
    """After a topic is recreated the group has no offset: the old one would make a restarted program skip records."""
    reports: list[tuple[object, Offsets]] = []
    member, commits = Coordinator(), queue(reports)
    member.go.set()
    commits.commit(member, OFFSETS, progress=True)
    commits.commit(member, OFFSETS, progress=True)
    commits.commit_later(member, OFFSETS, progress=True)
    assert member.requests == [OFFSETS], "the second and the third call have nothing to commit"
    commits.commit(member, {**OFFSETS, ("t", 1): 5}, progress=True)
    commits.commit(member, OFFSETS)
    assert member.requests[1:] == [{("t", 1): 5}, OFFSETS], "offsets that the program names are always sent"
    commits.report()
    assert reports == [(None, OFFSETS)], "a call without a request is answered, too"
    commits.close()


def test_progress_is_sent_after_older_offsets_in_the_same_request() -> None:
    """A program that goes back by name and then commits its progress keeps the progress."""
    member, commits = Coordinator(), queue([])
    commits.commit_later(member, {("t", 0): 5}, progress=True)
    assert member.reached.wait(10)
    commits.commit_later(member, {("t", 0): 2})
    commits.commit_later(member, {("t", 0): 5}, progress=True)
    member.go.set()
    commits.wait_until_answered()
    assert member.requests[-1] == {("t", 0): 5}
    commits.close()


def test_committed_progress_of_a_member_that_owns_nothing_is_refused() -> None:
    """The group continued without this member: the program must see that, although nothing is left to commit."""
    lost = NotOwnedError("lost")
    member, commits = Coordinator(lambda offsets: lost if ("u", 0) in offsets else None), queue()
    member.go.set()
    commits.note({("u", 0): 1})
    with pytest.raises(NotOwnedError):
        commits.commit(member, {("u", 0): 1}, progress=True)
    commits.close()


def test_what_another_client_commits_is_known_by_the_answer_to_its_newest_request() -> None:
    """An older answer says nothing of the group's offset, and a refused request leaves it as it was."""
    commits, key = queue(), ("t", 0)
    commits.note_sent({key: 5})
    assert commits.uncommitted({key: 5}) == {key: 5}, "it may be refused"
    commits.note_sent({key: 2})
    commits.note_answer({key: 5}, ())
    assert commits.uncommitted({key: 5}) == {key: 5}, "the second request is on its way"
    commits.note_answer({key: 2}, ())
    assert commits.uncommitted({key: 2}) == {}
    commits.note_sent({key: 7})
    commits.note_answer({key: 7}, {key})
    assert commits.uncommitted({key: 7}) == {key: 7}
    commits.note({key: 9})
    commits.note_answer({key: 9}, {key})
    commits.note_sent({key: 11})
    commits.note_answer({key: 11}, ())
    assert commits.uncommitted({key: 11}) == {}, "the answer to a synchronous call is not one of these"
    commits.note_sent({key: 12})
    commits.note({key: 13})
    commits.note_answer({key: 12}, ())
    assert commits.uncommitted({key: 13}) == {}, "a synchronous call has its answer before that of an older request"
    commits.close()


def test_after_a_commit_of_unknown_result_an_older_offset_is_committed_again() -> None:
    """The coordinator stored it and its answer was lost; then the program sought back, and would lose the records."""
    answers: list[Exception | None] = [None, MembershipError("no answer")]
    member, commits = Coordinator(lambda _: answers.pop(0)), queue()
    member.go.set()
    for offset in (5, 10):
        commits.commit_later(member, {("t", 0): offset})
        commits.wait_until_answered()
    assert commits.uncommitted({("t", 0): 5}) == {("t", 0): 5}
    commits.close()


def test_progress_behind_the_groups_offset_is_left_out() -> None:
    """A seek back is no progress, but the log of a new leader may end before the offset of an older one (KIP-320)."""
    member, commits = Coordinator(), queue()
    member.go.set()
    one = ("t", 0)
    assert commits.ahead({one: 1}) == {one: 1}, "nothing is known"
    commits.begin([one], {one: OffsetWithMetadata(7, "note", 3)})
    assert [bool(commits.ahead({one: at})) for at in (6, 7, 8)] == [False, True, True]
    epochs = [OffsetWithMetadata(at, "", epoch) for at, epoch in [(9, 2), (6, 3), (7, 3), (5, 4), (6, -1)]]
    assert [bool(commits.ahead({one: at})) for at in epochs] == [False, False, True, True, False]
    commits.commit(member, {one: 4})
    assert [bool(commits.ahead({one: at})) for at in (3, 4)] == [False, True], "an explicit commit may go back"
    commits.forget([one])
    assert not commits.ahead({one: 3}), "the next owner may have got further, but not less far"
    commits.begin([one], {})
    assert commits.ahead({one: 3}), "the group's offset is gone, or not known"
    commits.close()
