"""Commits one after another, whether they wait or not."""

import logging
import threading

import pytest

from assignors import FencedError
from assignors.consumer.ordered_commits import Commits, Offsets

OFFSETS = {("t", 0): 1}


def test_no_commit_overtakes_another() -> None:
    """One that waits comes after those that were started before it."""
    done: list[int] = []
    go = threading.Event()

    def slow(offsets: Offsets) -> None:
        go.wait(10)
        done.append(offsets["t", 0])

    commits = Commits(None)
    commits.start(slow, {("t", 0): 1})
    commits.start(slow, {("t", 0): 2})
    go.set()
    commits.commit(slow, {("t", 0): 3})
    assert done == [1, 2, 3]
    commits.close()


def test_results_are_told_where_they_are_asked_for() -> None:
    """`on_commit` runs in the thread that polls, with the error or None."""
    told: list[tuple[Exception | None, Offsets]] = []
    commits = Commits(lambda error, offsets: told.append((error, offsets)))

    def fail(_: Offsets) -> None:
        raise FencedError

    commits.start(fail, OFFSETS)
    commits.start(lambda _: None, OFFSETS)
    commits.settle()
    assert told == []
    assert commits.tell() == []
    assert [(type(error), offsets) for error, offsets in told] == [(FencedError, OFFSETS), (type(None), OFFSETS)]
    commits.close()


def test_failures_that_nobody_asked_for_are_handed_back(caplog: pytest.LogCaptureFixture) -> None:
    """Without `on_commit` they are not swallowed; a synchronous one raises."""
    caplog.set_level(logging.WARNING)
    commits = Commits(None)

    def fail(_: Offsets) -> None:
        raise FencedError

    commits.start(fail, OFFSETS)
    commits.settle()
    ((error, offsets),) = commits.tell()
    assert isinstance(error, FencedError)
    assert offsets == OFFSETS
    with pytest.raises(FencedError):
        commits.commit(fail, OFFSETS)
    commits.close()
