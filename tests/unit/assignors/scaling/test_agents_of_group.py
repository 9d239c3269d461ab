"""The number of agents of a group: monotone, at least one, and steady under a demand that goes up and down."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from assignors.scaling import (
    AgentsSettings,
    Capacity,
    Demand,
    Observation,
    Scaler,
    State,
    agents_needed,
    decide,
    window,
)
from assignors.scaling.agents_of_group import agents_for, demand, measured_agent_rate

DEMANDS = st.builds(
    Demand,
    widest=st.integers(0, 30),
    topics=st.integers(0, 5_000),
    arriving=st.floats(0, 1e7),
    backlog=st.floats(0, 1e10),
)
RATES = st.one_of(st.none(), st.floats(1.0, 1e6))
SETTINGS = st.builds(
    AgentsSettings,
    agent_rate=RATES,
    drain_s=st.floats(1.0, 86_400.0),
    topics=st.integers(1, 1_000),
    slack=st.floats(0.01, 1.0),
    least=st.integers(1, 5),
    most=st.integers(5, 50),
)
BEFORE = st.one_of(st.none(), st.integers(1, 60))


@given(
    DEMANDS, SETTINGS, BEFORE, RATES, st.sampled_from(["widest", "topics", "arriving", "backlog"]), st.integers(1, 99)
)
def test_more_demand_never_means_fewer_agents(  # noqa: PLR0913, PLR0917 -- drawn apart
    wanted: Demand, settings: AgentsSettings, before: int | None, rate: float | None, field: str, more: int
) -> None:
    """Else a backlog that grows would remove the agents that read it."""
    grown = replace(wanted, **{field: getattr(wanted, field) + more})
    fewer = agents_needed(wanted, settings, before, rate)
    assert fewer.agents <= agents_needed(grown, settings, before, rate).agents


@given(DEMANDS, SETTINGS, BEFORE, RATES)
def test_the_number_is_within_the_bounds(
    wanted: Demand, settings: AgentsSettings, before: int | None, rate: float | None
) -> None:
    """Without an agent there is no lag to see, so the number is never 0."""
    made = agents_needed(wanted, settings, before, rate)
    assert 1 <= settings.least <= made.agents
    assert made.agents <= max(settings.most, before or 0)
    assert made.reason
    assert made.agents >= agents_for(wanted, settings, rate).agents


@given(DEMANDS, SETTINGS, RATES, st.lists(st.floats(0.0, 1.0), min_size=2, max_size=20))
def test_a_demand_that_varies_by_less_than_the_slack_settles(
    wanted: Demand, settings: AgentsSettings, rate: float | None, waves: list[float]
) -> None:
    """Each change moves topics: after the first peak the number stays."""
    number: int | None = None
    seen = []
    for wave in [1.0, *waves]:
        factor = 1 + 0.98 * settings.slack * wave
        varied = replace(wanted, arriving=wanted.arriving * factor, backlog=wanted.backlog * factor)
        number = agents_needed(varied, settings, number, rate).agents
        seen.append(number)
    assert set(seen[1:]) == {seen[0]}


@given(DEMANDS, SETTINGS, BEFORE, RATES)
def test_a_second_round_with_the_same_demand_changes_nothing(
    wanted: Demand, settings: AgentsSettings, before: int | None, rate: float | None
) -> None:
    """The number does not creep."""
    made = agents_needed(wanted, settings, before, rate).agents
    assert agents_needed(wanted, settings, made, rate).agents == made


@pytest.mark.parametrize(
    ("wanted", "before", "agents", "reason"),
    [
        (Demand(), None, 1, "the least"),
        (Demand(widest=3, topics=3), None, 3, "a topic has 3 workers"),
        (Demand(widest=1, topics=900), None, 5, "900 seats of topics, 200 an agent"),
        (Demand(widest=1, topics=1, arriving=3_500.0), None, 4, "3,500 records/s arrive or wait, an agent reads 1,000"),
        (Demand(widest=1, topics=1, backlog=6_000_000.0), None, 10, "10,000 records/s"),
        (Demand(widest=1, topics=1, arriving=1e9), None, 20, "at most 20"),
        (Demand(widest=1, topics=1, arriving=3_500.0), 5, 5, "kept; 4 would do"),
        (Demand(widest=1, topics=1, arriving=3_500.0), 9, 5, "25% to spare"),
    ],
)
def test_the_reason_names_what_decides(wanted: Demand, before: int | None, agents: int, reason: str) -> None:
    """An operator asks why there are so many."""
    made = agents_needed(wanted, AgentsSettings(agent_rate=1_000.0, most=20), before)
    assert (made.agents, reason in made.reason) == (agents, True), made.reason


def test_the_demand_is_that_of_the_decisions() -> None:
    """Two topics with a thousand records a partition, read by two workers."""

    def column(value: int) -> np.ndarray:
        return np.full(2, value, dtype=np.int64)

    seen = window(
        [
            Observation(time_s=1e6 + 30 * n, start=column(0), end=column(1000 + 300 * n), committed=column(300 * n))
            for n in range(20)
        ]
    )
    made = [decide(Scaler(policy=Capacity(), worker_rate=5000.0), seen, State(workers=2), topic) for topic in "ab"]
    summed = demand(made)
    assert summed.widest == max(one.workers for one in made)
    assert summed.topics == sum(one.workers for one in made)
    assert summed.backlog == 4_000
    assert summed.arriving == pytest.approx(40.0, rel=0.05)
    assert demand([]) == Demand()
    assert measured_agent_rate(made) is None
    assert measured_agent_rate([replace(made[0], state=replace(made[0].state, worker_rate=70.0)), made[1]]) == 70.0


@pytest.mark.parametrize("wrong", [{"least": 0}, {"least": 3, "most": 2}, {"agent_rate": float("nan")}, {"slack": 0}])
def test_wrong_settings_are_refused(wrong: dict[str, float]) -> None:
    """With the setting's name."""
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        AgentsSettings.model_validate(wrong)
