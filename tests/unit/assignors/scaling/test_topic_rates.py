"""Rates that are published as weights: relative to each other, and changed seldom."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.scaling import Observation, window
from assignors.scaling.observation import Window
from assignors.scaling.topic_rates import TopicRates

BEGIN_S, STEP_S = 1e6, 60.0
TOPICS = {"a": 400.0, "b": 40.0, "c": 4.0, "d": 4.0, "e": 4.0}


def seen(rate: float, now_s: float, span_s: float = 1200.0) -> Window:
    """Observations of a topic with two partitions and an even rate until now."""
    times = np.arange(now_s - span_s, now_s + 1, STEP_S)
    return window(
        [
            Observation(
                time_s=float(at),
                start=np.zeros(2, dtype=np.int64),
                end=np.full(2, 1_000_000 + round(rate / 2 * (at - times[0]) * 1000) // 1000),
                committed=np.zeros(2, dtype=np.int64),
            )
            for at in times
        ]
    )


def rounds(
    rates: TopicRates, published: dict[str, float], rate_at: Callable[[str, float], float], times: range
) -> list[dict[str, float]]:
    """Publish what each round says, and return the rates in force after each of them."""
    found = []
    for at in times:
        rates.begin(published)
        for topic in TOPICS:
            new = rates.next(topic, published.get(topic), seen(rate_at(topic, float(at)), BEGIN_S + at))
            if new is not None:
                published[topic] = new
        found.append(dict(published))
    return found


def steady(topic: str, at: float) -> float:  # noqa: ARG001 -- one of the functions of time
    """The same rate at each time."""
    return TOPICS[topic]


def test_rates_are_published_from_offsets() -> None:
    """In records a second of all partitions together, from the second round on, as the first one shows no unit."""
    first, second, third = rounds(TopicRates(), {}, steady, range(0, 180, 60))
    assert first == {}
    assert second == third == TOPICS


def test_a_short_window_shows_no_rate() -> None:
    """After a restart with a store in memory, the published rates stay in force for ten minutes."""
    rates = TopicRates()
    for _ in range(2):
        rates.begin({"a": 7.0})
        assert rates.next("a", 7.0, seen(400.0, BEGIN_S, span_s=540.0)) == 7.0
        assert rates.next("new", None, seen(400.0, BEGIN_S, span_s=540.0)) is None


@settings(max_examples=20, deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(TOPICS)), st.floats(0.92, 1.08)),
    st.floats(0.2, 5.0),
)
def test_slow_drift_and_the_time_of_day_publish_nothing(drift: dict[str, float], daily: float) -> None:
    """A change is a new view for all agents: drift of a tenth, and a load that changes on all topics alike, is none."""
    rates = TopicRates()
    published = dict(rounds(rates, {}, steady, range(0, 120, 60))[-1])

    def later(topic: str, at: float) -> float:
        return TOPICS[topic] * (1 + (drift.get(topic, 1.0) - 1) * at / 7200) * (1 + (daily - 1) * at / 7200)

    assert all(one == published for one in rounds(rates, dict(published), later, range(960, 7200, 960)))


def test_a_topic_that_grows_is_published_alone_and_in_the_same_unit() -> None:
    """Its rate relative to the others counts: here all rates have doubled, and one is three times as large besides."""
    rates = TopicRates()
    published = dict(rounds(rates, {}, steady, range(0, 120, 60))[-1])

    def later(topic: str, at: float) -> float:  # noqa: ARG001 -- one of the functions of time
        return TOPICS[topic] * (6.0 if topic == "b" else 2.0)

    after = rounds(rates, published, later, range(960, 1200, 60))[-1]
    assert after == {**TOPICS, "b": 120.0}


def test_rates_change_together_and_at_most_every_quarter_of_an_hour() -> None:
    """A load that jumps to and fro would otherwise move topics every round."""
    rates = TopicRates()
    published = dict(rounds(rates, {}, steady, range(0, 120, 60))[-1])

    def jumping(topic: str, at: float) -> float:
        return TOPICS[topic] * (3.0 if topic == "a" and at // 60 % 2 else 1.0)

    found = rounds(rates, published, jumping, range(960, 4 * 900 + 960, 60))
    changes = sum(one != two for one, two in pairwise(found))
    assert 1 <= changes <= 4


def test_rare_records_are_no_change() -> None:
    """One record instead of two in a window is not half of a topic's volume."""
    rates = TopicRates()
    published = {**TOPICS, "e": 0.002}

    def rare(topic: str, at: float) -> float:
        return (0.001 if at % 120 else 0.004) if topic == "e" else TOPICS[topic]

    assert all(one == published for one in rounds(rates, dict(published), rare, range(0, 4000, 940)))


def test_a_clock_that_goes_back_does_not_stop_changes() -> None:
    """The next change would otherwise wait until the clock has caught up."""
    rates = TopicRates()
    published = dict(rounds(rates, {}, steady, range(0, 120, 60))[-1])

    def grown(topic: str, at: float) -> float:
        return TOPICS[topic] * (3.0 if topic == "a" and at > 0 else 1.0)

    assert rounds(rates, published, grown, range(960, 1080, 60))[-1]["a"] == 1200.0
    assert rounds(rates, published, steady, range(-90_000, -89_880, 60))[-1]["a"] == 400.0
