"""What was unread at the start, and when it counts as read, refused or left."""

import pytest

from assignors.fleet import FleetTopic
from spark_sink.claimed.caught_up import Ending, StartBacklog
from spark_sink.errors import TableError
from spark_sink.lake.table_contract import LostRecordsError
from spark_sink.ranges.batch_offset import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TOPICS = {"a": FleetTopic("c", "1", "a", "s", 2), "b": FleetTopic("c", "2", "b", "s", 1)}
BEGINNINGS = {A0: 0, A1: 5, B0: 10}
ENDS = {A0: 50, A1: 5, B0: 17}
REFUSED: dict[str, Exception] = {"b": TableError("the table refuses them")}


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """At 0."""
    return Clock()


@pytest.fixture
def backlog(clock: Clock) -> StartBacklog:
    """50 records of a/0 and 7 of b/0; a/1 is empty."""
    made = StartBacklog(clock)
    made.see(TOPICS, whole=True)
    made.add(BEGINNINGS, ENDS)
    return made


def test_it_ends_when_the_tables_have_all_of_before_the_start(backlog: StartBacklog) -> None:
    """It does not matter which job wrote it, nor what has come since."""
    assert backlog.records == 57
    backlog.settle({A0: 20, B0: 99})
    assert backlog.ending((), over=False) is None
    assert (dict(backlog.left), backlog.records) == ({A0: 50}, 30)
    backlog.settle({A0: 50})
    assert backlog.ending((), over=False) is Ending.READ


def test_nothing_is_read_before_everything_is_known(clock: Clock) -> None:
    """Neither a list without a topic that cannot be described, nor a log without a leader, is empty."""
    backlog = StartBacklog(clock)
    assert backlog.ending((), over=False) is None
    backlog.see({"a": TOPICS["a"]}, whole=False)
    backlog.add(BEGINNINGS, {A0: 0})
    assert (backlog.known, set(backlog.unknown)) == (False, {A1})
    backlog.add(BEGINNINGS, {A1: 5})
    assert backlog.ending((), over=False) is None
    backlog.see(TOPICS, whole=True)
    assert backlog.ending((), over=False) is None
    backlog.add({B0: 3}, {B0: 3})
    assert backlog.ending((), over=False) is Ending.READ


def test_topics_of_after_the_start_are_the_next_jobs(backlog: StartBacklog) -> None:
    """Else a job whose pattern matches ever new topics would never end."""
    backlog.see({**TOPICS, "new": FleetTopic("c", "3", "new", "s", 1)}, whole=True)
    assert backlog.known


@pytest.mark.parametrize("topics", [{"a": TOPICS["a"]}, {**TOPICS, "b": FleetTopic("c", "9", "b", "s", 1)}])
def test_a_topic_that_is_gone_is_not_waited_for(backlog: StartBacklog, topics: dict[str, FleetTopic]) -> None:
    """Deleted, or recreated: its offsets mean nothing any more."""
    backlog.see(topics, whole=True)
    backlog.settle({A0: 50})
    assert backlog.ending((), over=False) is Ending.READ


def test_a_paused_topic_is_not_waited_for(backlog: StartBacklog) -> None:
    """A person has said that it is not to be read."""
    backlog.settle({A0: 50})
    assert backlog.ending({"b"}, over=False) is Ending.READ


def test_a_refused_topic_is_given_up_after_a_minute(backlog: StartBacklog, clock: Clock) -> None:
    """Not while others are still read, and not if it has moved on since."""
    backlog.note(REFUSED, failed=False)
    clock.now = 61
    assert backlog.ending((), over=False) is None
    backlog.settle({A0: 50, B0: 12})
    assert backlog.ending((), over=False) is None
    backlog.note(REFUSED, failed=False)
    clock.now = 120
    assert backlog.ending((), over=False) is None
    clock.now = 122
    assert backlog.ending((), over=False) is Ending.REFUSED


def test_rounds_that_fail_for_a_minute_end_it(backlog: StartBacklog, clock: Clock) -> None:
    """Brokers or a database that are away; a round that succeeds begins the minute again."""
    backlog.note({}, failed=True)
    clock.now = 59
    assert backlog.ending((), over=False) is None
    backlog.note({}, failed=False)
    backlog.note({}, failed=True)
    clock.now = 118
    assert backlog.ending((), over=False) is None
    clock.now = 119
    assert backlog.ending((), over=False) is Ending.REFUSED


def test_lost_bad_records_are_a_refusal_although_the_table_moves_on(backlog: StartBacklog) -> None:
    """Cron would take a 0 for a run in which nothing was lost."""
    backlog.note({"b": LostRecordsError("their files are gone", [])}, failed=False)
    backlog.settle({A0: 50})
    assert (backlog.ending((), over=False), backlog.lost) == (None, False)
    backlog.settle({B0: 17})
    backlog.note({}, failed=False)
    assert (backlog.ending((), over=False), backlog.lost) == (Ending.REFUSED, True)


@pytest.mark.parametrize(
    ("refused", "failed", "ends"),
    [({}, False, Ending.OVER), (REFUSED, False, Ending.REFUSED), ({}, True, Ending.REFUSED)],
)
def test_the_end_of_the_time_tells_a_backlog_from_a_fault(
    backlog: StartBacklog, refused: dict[str, Exception], ends: Ending, *, failed: bool
) -> None:
    """The next job goes on with the one; a person looks at the other."""
    backlog.note(refused, failed=failed)
    assert backlog.ending((), over=True) is ends
    backlog.settle({A0: 50, B0: 17})
    assert backlog.ending((), over=True) is Ending.READ
