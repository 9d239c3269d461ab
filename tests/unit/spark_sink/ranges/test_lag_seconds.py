"""Lag in seconds, from positions and ends."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.ranges.lag_seconds import UnreadAges

KEY = TopicPartition("t", 0)


class _Looks:
    """Looks at one partition at the times that a test gives."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.ages = UnreadAges(clock=lambda: self.now, wall=lambda: self.now)

    def at(self, now: float, position: int, end: int) -> float:
        """The age at one look."""
        self.now = now
        return self.ages.look({KEY: position}, {KEY: end})["t"]


def test_a_busy_topic_that_is_always_a_few_records_behind_is_young() -> None:
    """A hundred records a second and seven of them unread: the lag is a fraction of a second, an hour later, too."""
    looks = _Looks()
    seen = [looks.at(5.0 * n, 500 * n - 7, 500 * n) for n in range(1, 721)]
    assert max(seen[1:]) == pytest.approx(0.07)


def test_the_age_rises_while_the_position_stands() -> None:
    """A table that refuses for an hour: the oldest unread record is an hour old, however many follow it."""
    looks = _Looks()
    seen = [looks.at(5.0 * n, 1000, 1000 + 500 * (n - 1)) for n in range(1, 722)]
    assert seen[0] == 0
    assert seen[-1] == pytest.approx(3600, abs=5)


def test_a_record_after_a_long_silence_is_young() -> None:
    """An hour without a record, and then one: it is as old as the time between two looks, not as the silence."""
    looks = _Looks()
    assert [looks.at(5.0 * n, 7, 7) for n in range(720)] == [0.0] * 720
    assert looks.at(3600.0, 7, 8) == pytest.approx(5.0)


def test_a_log_that_was_recreated_starts_again() -> None:
    """Its first records are not as old as those of the log before."""
    looks = _Looks()
    assert [looks.at(0.0, 90, 90), looks.at(50.0, 90, 100), looks.at(60.0, 0, 5)] == [0.0, 50.0, 0.0]


def test_a_backlog_from_before_the_first_look_has_the_age_of_its_records() -> None:
    """An agent that restarts an hour behind says an hour, as soon as it has read a record, and not seconds."""
    looks = _Looks()
    assert looks.at(1000.0, 50, 100) == 0
    looks.ages.written(KEY, 50, 1000.0 - 3600)
    assert looks.at(1000.0, 50, 110) == 3600
    looks.ages.written(KEY, 75, 1000.0 - 1800)
    assert looks.at(1000.0, 75, 110) == 1800


@pytest.mark.parametrize("age_s", [1e9, -1e9], ids=["years ago", "in the future"])
def test_a_timestamp_that_contradicts_the_ends_is_not_believed(age_s: float) -> None:
    """Producers set timestamps: an event from last year that was written a second ago is no lag of a year."""
    looks = _Looks()
    looks.at(1000.0, 100, 100)
    looks.at(1005.0, 100, 200)
    looks.ages.written(KEY, 150, looks.now - age_s)
    assert looks.at(1006.0, 150, 200) == pytest.approx(3.5)


@given(st.lists(st.tuples(st.floats(0.1, 60), st.integers(0, 20), st.integers(0, 25)), min_size=2, max_size=60))
def test_the_age_is_right_to_the_time_between_two_looks(steps: list[tuple[float, int, int]]) -> None:
    """Whatever is written and read between looks: compared with a log that knows when each record was written."""
    looks, now, position = _Looks(), 0.0, 0
    log: list[tuple[float, float]] = []  # between these two looks each record was written
    assert looks.at(0.0, 0, 0) == 0
    for gap, new, read in steps:
        log += [(now, now + gap)] * new
        now += gap
        position = min(len(log), position + read)
        age = looks.at(now, position, len(log))
        if position == len(log):
            assert age == 0
        else:
            after, before = log[position]
            assert now - before - 1e-6 <= age <= now - after + 1e-6


def test_marks_stay_few_while_a_partition_stands_for_a_day() -> None:
    """A partition that is not read costs no memory that grows; its age is known all the same."""
    looks = _Looks()
    for n in range(10_000):
        looks.at(5.0 * n, 1, n)
    assert sum(len(marks) for marks in looks.ages._marks.values()) <= 64
    assert looks.at(50_000.0, 5000, 10_000) == pytest.approx(25_000, rel=0.02)
    looks.ages.keep([])
    assert looks.at(50_005.0, 5000, 10_000) == 0, "forgotten"


def test_a_cluster_is_asked_for_the_age_of_a_backlog_once() -> None:
    """A job that restarts every minute would never be an hour late."""
    asked: list[int] = []

    def at_times(times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        asked.extend(times_ms.values())
        return {key: max(0, at // 10) for key, at in times_ms.items()}  # a hundred records a second since 1970

    now = [100_000.0]
    ages = UnreadAges(at_times, lambda: now[0], lambda: now[0])
    other = TopicPartition("u", 0)
    assert ages.look({other: 7}, {other: 7}) == {"u": 0.0}
    assert not asked, "of one that is not behind there is nothing to ask"
    late = {KEY: 100 * (100_000 - 3600)}
    assert ages.look(late, {KEY: 100 * 100_000}) == {"t": pytest.approx(3600, abs=0.1)}
    asked.clear()
    now[0] += 5
    assert ages.look(late, {KEY: 100 * 100_005}) == {"t": pytest.approx(3605, abs=0.1)}
    assert not asked


@pytest.mark.parametrize("age_s", [0.2, 5, 70, 700, 5000, 90_000, 500_000])
def test_a_backlog_after_a_silence_is_as_old_as_its_first_record(age_s: float) -> None:
    """`azimuth fleet status` looks once: a burst of a moment ago is no lag of minutes, whatever was silent before."""
    burst_s = 2_000_000.0 - age_s
    stamps = [*(1_000_000.0 + n for n in range(50)), *(burst_s + n / 1000 for n in range(50))]

    def at_times(times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {
            key: next((n for n, one in enumerate(stamps) if one * 1000 >= at), None) for key, at in times_ms.items()
        }

    ages = UnreadAges(at_times, lambda: 2_000_000.0, lambda: 2_000_000.0)
    assert ages.look({KEY: 50}, {KEY: 100})["t"] == pytest.approx(age_s, rel=0.06, abs=1.0)
    ages = UnreadAges(at_times, lambda: 2_000_000.0, lambda: 2_000_000.0)
    assert ages.look({KEY: 20}, {KEY: 100})["t"] >= 7 * 86_400 * 0.94, "older than the oldest age"


def test_a_partition_whose_leader_does_not_answer_is_dated_by_the_first_look() -> None:
    """And the others get their ages."""
    other = TopicPartition("u", 0)

    def at_times(times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {key: (None if at > 940_000 else 0) for key, at in times_ms.items() if key == KEY}

    ages = UnreadAges(at_times, lambda: 1000.0, lambda: 1000.0)
    assert ages.look({KEY: 5, other: 5}, {KEY: 9, other: 9}) == {"t": pytest.approx(60, rel=0.06), "u": 0.0}
