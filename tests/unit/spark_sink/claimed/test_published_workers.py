"""The numbers that a job follows, against a feed in memory."""

import gc
import logging
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from assignors.errors import PublishError
from assignors.scaling import ScaledTopic, WorkersRecord
from spark_sink.claimed import published_workers
from spark_sink.claimed.published_workers import FollowedNumbers
from tests.waiting import wait_until


class Feed:
    """A workers topic that a test changes."""

    cluster = "c"

    def __init__(self) -> None:
        self.records: dict[ScaledTopic, WorkersRecord] = {}
        self.error: Exception | None = None
        self.reads: list[bool] = []
        self.closed = threading.Event()

    def refresh(self, timeout_s: float = 5.0, *, to_end: bool = False) -> bool:  # noqa: ARG002 -- as in `WorkersFeed`
        """Count, and fail if told."""
        self.reads.append(to_end)
        if self.error is not None:
            raise self.error
        return False

    def close(self) -> None:
        """Say so."""
        self.closed.set()


@contextmanager
def followed(monkeypatch: pytest.MonkeyPatch, feed: Feed) -> Iterator[FollowedNumbers]:
    """Numbers of group g, looked at all the time."""
    monkeypatch.setattr(published_workers, "_INTERVAL_S", 0.01)
    numbers = FollowedNumbers({}, "t", "g", feed=lambda *_: feed)
    try:
        yield numbers
    finally:
        numbers.close()
        assert feed.closed.wait(10)


def test_the_last_numbers_stay_while_no_broker_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A change is logged once, and so is an error; a call never raises."""
    caplog.set_level(logging.INFO)
    feed = Feed()
    feed.records = {
        ScaledTopic("c", "g", "a"): WorkersRecord(workers=3, at_ms=1),
        ScaledTopic("c", "other", "b"): WorkersRecord(workers=4, at_ms=1),
        ScaledTopic("d", "g", "b"): WorkersRecord(workers=5, at_ms=1),
    }
    with followed(monkeypatch, feed) as numbers:
        wait_until(lambda: bool(numbers()), 10)
        assert {topic: one.workers for topic, one in numbers().items()} == {"a": 3}
        feed.error = PublishError("away")
        done = len(feed.reads)
        wait_until(lambda: len(feed.reads) > done + 3, 10)
        assert numbers()["a"].workers == 3
        feed.error, feed.records = None, {}
        wait_until(lambda: not numbers(), 10)
    assert caplog.text.count("a: 3 workers") == 1
    assert caplog.text.count("the last ones stay") == 1
    assert caplog.text.count("a: no number of workers any more") == 1


def test_the_thread_ends_with_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that was dropped must not keep a client."""
    monkeypatch.setattr(published_workers, "_INTERVAL_S", 0.01)
    feed = Feed()
    numbers = FollowedNumbers({}, "t", "g", feed=lambda *_: feed)
    wait_until(lambda: bool(feed.reads), 10)
    dropped = weakref.ref(numbers)
    del numbers
    wait_until(lambda: gc.collect() >= 0 and dropped() is None, 10)
    assert feed.closed.wait(10)
