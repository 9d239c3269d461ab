"""How a reader follows the pauses of its group."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from assignors.errors import PauseError
from assignors.pauses import Pause
from spark_sink.kafka.pause_watch import Feed, PausedTopics, described
from tests.waiting import wait_until

PAUSE = Pause(at_ms=0, by="ops@h", reason="the table moves")


@dataclass
class Scripted:
    """A feed without brokers."""

    pauses: dict[str, Pause] = field(default_factory=dict)
    away: bool = False
    refused: bool = False
    fault: Exception = field(default_factory=lambda: PauseError("no broker answers"))
    asked: list[bool] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    answers: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.answers.set()

    def refresh(self, timeout_s: float = 5.0, *, to_end: bool = False) -> bool:
        """Note the question."""
        assert timeout_s > 0
        self.asked.append(to_end)
        assert self.answers.wait(60)
        if self.away:
            raise self.fault
        return True

    def paused(self, group: str) -> dict[str, Pause]:
        """Return the pauses of the only group."""
        return dict(self.pauses) if group == "g" else {}

    def close(self) -> None:
        """Note it."""
        self.closed.set()


def follower(feed: Feed, clock: Callable[[], float] = lambda: 0.0) -> PausedTopics:
    """The pauses of group g."""
    return PausedTopics({}, "g", lambda _: feed, clock)


def test_pauses_are_unknown_until_the_topic_was_read_to_its_end() -> None:
    """Or a restarted reader would read a paused topic until its first look."""
    feed = Scripted({"t": PAUSE})
    feed.answers.clear()
    paused = follower(feed)
    assert paused() is None
    feed.answers.set()
    wait_until(lambda: paused() == {"t": PAUSE})
    assert feed.asked[0] is True
    paused.close()
    assert feed.closed.wait(5)


def test_the_thread_ends_with_its_owner() -> None:
    """A job or an agent that is built and dropped must not leave a client that asks brokers for ever."""
    feed = Scripted()
    owners = [follower(feed)]
    wait_until(lambda: owners[0]() is not None)
    owners.clear()
    assert feed.closed.wait(5)


def test_the_last_pauses_count_while_no_broker_answers() -> None:
    """A paused topic stays paused, and no other is affected."""
    feed = Scripted({"t": PAUSE})
    paused = follower(feed)
    assert paused.look(feed, whole=True)
    feed.away, feed.pauses = True, {}
    assert not paused.look(feed, whole=False)
    assert paused() == {"t": PAUSE}
    feed.away = False
    paused.look(feed, whole=False)
    assert paused() == {}
    paused.close()


def test_a_reader_without_rights_says_once_that_it_follows_no_pause(caplog: pytest.LogCaptureFixture) -> None:
    """An operator who pauses a topic of such a reader finds the reason in its log; it reads all topics meanwhile."""
    feed = Scripted(refused=True)
    paused = follower(feed)
    with caplog.at_level("INFO"):
        assert paused.look(feed, whole=True)
        assert paused.look(feed, whole=False)
        feed.refused = False
        paused.look(feed, whole=False)
        feed.refused = True
        paused.look(feed, whole=False)
    assert caplog.text.count("allow this user to DESCRIBE and READ topic '__azimuth_paused'") == 2
    paused.close()


def test_a_reader_that_cannot_learn_of_pauses_starts_after_a_while() -> None:
    """The topic of the pauses must not stop the reading of all others."""
    now = [0.0]
    feed = Scripted(away=True)
    feed.answers.clear()
    paused = follower(feed, lambda: now[0])
    assert paused() is None
    now[0] = 14.9
    assert paused() is None
    now[0] = 15.0
    assert paused() == {}
    feed.answers.set()
    paused.close()


def test_a_pause_says_since_when_by_whom_and_why() -> None:
    """A pause that a colleague forgot is found by its name."""
    assert described(PAUSE) == " since 1970-01-01 00:00:00Z by ops@h: the table moves"


def test_an_unexpected_error_does_not_end_the_following() -> None:
    """Without the thread a pause would hold for ever."""
    feed = Scripted({"t": PAUSE}, away=True, fault=RuntimeError("a fault of a library"))
    paused = follower(feed)
    assert paused() is None
    wait_until(lambda: feed.asked)
    feed.away = False
    wait_until(lambda: paused() == {"t": PAUSE})
    paused.close()
