"""Agents that take up new numbers at different times leave no partition without a reader."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.fleet import Agent, Balance, FleetTopic, FleetWorkers, View
from assignors.fleet.agreed_workers import KnownWorkers, agreed_digest, workers_digest
from assignors.fleet.topic_descriptions import Sighting
from tests.unit.assignors.fleet.model_fleet import ModelAgent, Server, readers

TOPICS = tuple(FleetTopic("c", f"id-{n}", f"t{n}", "s", 6) for n in range(8))
NAMES = ("a", "b", "c")
NUMBERS = (
    FleetWorkers(),
    FleetWorkers(scaled={"s/t0": 2, "s/t1": 3}),
    FleetWorkers(scaled={"s/t0": 3}, overrides={"t2": ("a",), "t3": ("b", "c"), "t4": 2}),
    FleetWorkers(overrides={"t2": ("c",), "t3": ("a",), "t5": ("b",)}),
)
SETS = ((0, 1, 2), (3, 4, 7))
"""Topics that are large, before and after."""
STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),  # the agent
        st.one_of(st.none(), st.sampled_from(NUMBERS)),  # its new numbers
        st.booleans(),  # whether it hears of the newest view
        st.floats(0, 20),  # seconds since the step before
    ),
    max_size=20,
)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, last=st.sampled_from(NUMBERS))
def test_each_partition_has_a_reader_whenever_all_agents_have_the_same_view(
    steps: list[tuple[int, FleetWorkers | None, bool, float]], last: FleetWorkers
) -> None:
    """Whatever their files say. And with the same file for all, each partition has exactly one reader, by seats."""
    now = 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now)
        server = Server()
        agents = [ModelAgent(name, server, Sighting(cluster="c", topics=TOPICS)) for name in NAMES]

        def settle() -> None:
            for _ in range(2):
                for one in agents:
                    one.step()

        settle()
        for number, workers, hears, seconds in steps:
            now += seconds
            agents[number].workers = workers or agents[number].workers
            agents[number].step(hears=hears)
            if hears:
                settle()
                found = readers(agents, TOPICS)
                assert all(found.values()), "as soon as all have heard, no partition waits"
        for one in agents:
            one.workers = last
            one.step(hears=False)
        settle()
        found = readers(agents, TOPICS)
        assert [len(who) for who in found.values()] == [1] * len(found)
        assert all(lane.seated for one in agents for lane in one.ingestion.lanes)
        assert {one: len({found[one, n][0] for n in range(6)}) for one in ("t0", "t1")} == {
            one: last.wanted(topic) for one, topic in zip(("t0", "t1"), TOPICS, strict=False)
        }
        assert not [problem for one in agents for problem in one.loop.status()["problems"] if "differ" in problem]


def test_weights_that_agents_take_up_one_after_another_give_each_partition_one_reader() -> None:
    """All compute with the previous weights until the last one has the new ones, so no two placements are mixed."""
    server = Server()
    agents = [
        ModelAgent(name, server, Sighting(cluster="c", topics=TOPICS), balance=Balance(by="volume")) for name in NAMES
    ]
    heavy = [FleetWorkers(weights={f"c/t{n}": 100.0 if n in {a, b, c} else 1.0 for n in range(8)}) for a, b, c in SETS]
    for one in agents * 2:
        one.step()
    for numbers in heavy:
        for one in agents:
            one.workers = numbers
            for other in agents * 2:
                other.step()
            found = readers(agents, TOPICS)
            assert [len(who) for who in found.values()] == [1] * len(found)
            assert all(lane.seated for each in agents for lane in each.ingestion.lanes)
    loads = {found[f"t{n}", 0][0] for n in SETS[1]}
    assert loads == set(NAMES), "each agent has one of the three large topics"


def test_a_change_that_reaches_all_agents_in_time_leaves_seats_in_force() -> None:
    """The autoscaler publishes often: if each change sent all lanes to their groups and back, reading would pause."""
    server = Server()
    agents = [ModelAgent(name, server, Sighting(cluster="c", topics=TOPICS)) for name in NAMES]
    for one in agents * 2:
        one.step()
    for one in agents:
        one.workers = NUMBERS[1]
        for other in agents * 2:
            other.step()
            assert all(lane.seated for agent in agents for lane in agent.ingestion.lanes)
        found = readers(agents, TOPICS)
        assert all(found.values())
    assert len({who for n in range(6) for who in found["t1", n]}) == 3


def test_an_agent_that_keeps_other_numbers_is_named_and_the_groups_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with another file: after half a minute the others no longer compute with the numbers of before."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    server = Server()
    agents = [ModelAgent(name, server, Sighting(cluster="c", topics=TOPICS)) for name in NAMES]
    for one in agents * 2:
        one.step()
    for one in agents[:2]:
        one.workers = NUMBERS[1]
    for one in agents * 2:
        one.step()
    assert not [problem for one in agents for problem in one.loop.status()["problems"]]
    now += 31
    for one in agents * 2:
        one.step()
    old, new = workers_digest(NUMBERS[0]), workers_digest(NUMBERS[1])
    said = (
        f"the current workers per topic differ: {new} on a, b, {old} on c; all hosts need the same workers.file, "
        "and all agents must reach the workers topic"
    )
    for one in agents:
        assert one.loop.status()["problems"] == [said]
        assert not any(lane.seated for lane in one.ingestion.lanes)
    assert all(readers(agents, TOPICS).values())


def test_a_previous_version_among_the_agents_means_the_groups_decide() -> None:
    """It declares no numbers, so the others cannot tell with which ones it computes."""
    known = KnownWorkers()
    known.take(FleetWorkers(), 0.0)
    new = known.declared(Agent("new", settings=("assignment=1",)))
    assert agreed_digest(View((new,))) == workers_digest(FleetWorkers())
    assert agreed_digest(View((new, Agent("old", settings=("assignment=1",))))) is None


def test_numbers_stay_known_while_the_view_says_that_they_are_declared() -> None:
    """While the membership's server is away no view changes: all agents go on with the numbers of the last one."""
    known = KnownWorkers(keep_s=1.0)
    known.take(NUMBERS[0], 0.0)
    view = View((known.declared(Agent("a")),))
    for at, workers in enumerate(NUMBERS[1:] * 3):
        known.take(workers, 10.0 * at)
        assert known.in_force(view, "a") == NUMBERS[0]
    assert known.in_force(View((known.declared(Agent("a")),)), "a") == NUMBERS[-1]


@given(
    phases=st.lists(st.floats(0, 2), min_size=3, max_size=3),
    seconds=st.floats(1, 25),
)
def test_agents_keep_numbers_in_common_while_many_numbers_are_published(phases: list[float], seconds: float) -> None:
    """A round of the autoscaler publishes topic after topic, and each agent reads every two seconds at its own time."""
    view = View()
    known = [KnownWorkers() for _ in NAMES]
    reads = sorted((phase + 2.0 * turn, number) for number, phase in enumerate(phases) for turn in range(20))
    for one in known:
        one.take(FleetWorkers(scaled={"s/t": 1}), 0.0)
    for at, number in reads:
        published = 1 + int(min(at, seconds) * 5)
        known[number].take(FleetWorkers(scaled={"s/t": published}), at)
        agents = [one.declared(Agent(name)) for one, name in zip(known, NAMES, strict=True)]
        view = view.following(agents, view.version + 1)
        assert agreed_digest(view) is not None


def test_an_agent_that_does_not_know_a_cluster_yet_declares_the_same_numbers() -> None:
    """Otherwise one agent without access to one cluster would send all agents to their groups."""
    published = {"cluster-1/t": 2, "cluster-2/t": 3}
    one = FleetWorkers(scaled={"s/t": 2, "u/t": 3}, published=published)
    other = FleetWorkers(scaled={"s/t": 2}, published=published)
    assert workers_digest(one) == workers_digest(other)
    assert workers_digest(one) != workers_digest(FleetWorkers(scaled={"s/t": 2}, published={"cluster-1/t": 2}))
