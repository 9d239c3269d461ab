"""The placement of topics on agents: deterministic, bounded, and without unnecessary moves."""

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import Rendezvous
from assignors.errors import BoundError, FleetError, WorkersError
from assignors.fleet import Agent, Balance, Decision, FleetTopic, FleetWorkers, View, decide, explain
from assignors.fleet.bounded_seats import Level, Seating


def fleet(count: int, departed: int = 0) -> View:
    """Agents of equal capacity, and some that have gone."""
    return View(tuple(Agent(f"agent-{n}") for n in range(count)), 1, tuple(Agent(f"gone-{n}") for n in range(departed)))


def topics(count: int, clusters: int = 2) -> list[FleetTopic]:
    """Topics of several clusters, of which some have the same names."""
    return [FleetTopic(f"c{n % clusters}", f"id-{n}", f"t{n // clusters}", f"s{n % clusters}") for n in range(count)]


def changed(before: Decision, after: Decision) -> set[str]:
    """Return the topics whose agents have changed."""
    return {t for t, agents in after.workers.items() if agents != before.workers[t]}


sizes = st.tuples(st.integers(1, 12), st.integers(0, 4), st.integers(1, 60), st.integers(1, 5))


@given(sizes, st.randoms(use_true_random=False), st.floats(0, 1))
def test_every_agent_that_sees_the_same_decides_the_same(
    size: tuple[int, int, int, int], random: Random, epsilon: float
) -> None:
    """The order in which agents and topics came means nothing; only the order of departures counts."""
    agents, departed, count, workers = size
    view, asked, balance = fleet(agents, departed), topics(count), Balance(epsilon=epsilon)
    members, shuffled = list(view.members), list(asked)
    random.shuffle(members)
    random.shuffle(shuffled)
    other = View(tuple(members), view.version, view.departed)
    policy = FleetWorkers(default=workers)
    assert decide(view, asked, policy, balance).workers == decide(other, shuffled, policy, balance).workers


@given(sizes, st.floats(0, 1))
def test_a_topic_has_as_many_living_agents_as_it_should(size: tuple[int, int, int, int], epsilon: float) -> None:
    """`workers` distinct ones, or all where fewer live."""
    agents, departed, count, workers = size
    view = fleet(agents, departed)
    made = decide(view, topics(count), FleetWorkers(default=workers), Balance(epsilon=epsilon))
    for seats in made.workers.values():
        assert len(seats) == len(set(seats)) == min(workers, agents)
        assert set(seats) <= set(view.ids)


@given(st.integers(1, 15), st.integers(1, 80), st.integers(1, 6), st.floats(0, 1))
def test_no_agent_is_loaded_above_the_bound(agents: int, count: int, workers: int, epsilon: float) -> None:
    """At most (1 + epsilon) x the mean in whole topics, and never more than one above the mean's ceiling for that."""
    made = decide(fleet(agents), topics(count), FleetWorkers(default=workers), Balance(epsilon=epsilon))
    mean = count * min(workers, agents) / agents
    assert max(made.loads.values()) <= max(math.ceil(round(mean, 9)), math.floor(round((1 + epsilon) * mean, 9)))


@given(sizes, st.data(), st.sampled_from([0.0, 0.05, 0.3]))
def test_an_agents_death_moves_only_its_topics(
    size: tuple[int, int, int, int], data: st.DataObject, epsilon: float
) -> None:
    """After deaths in any order, each survivor keeps its topics, and an agent that returns gets exactly its topics."""
    agents, departed, count, workers = size
    view, asked = fleet(agents, departed), topics(count)
    policy, balance = FleetWorkers(default=workers, overrides={"t0": 3}), Balance(epsilon=epsilon)
    before = decide(view, asked, policy, balance)
    first, after = view, before
    for dead in data.draw(st.lists(st.sampled_from(view.ids), unique=True, max_size=agents)):
        last, view = after, view.without(dead)
        after = decide(view, asked, policy, balance)
        assert changed(last, after) <= {t.identity for t in last.of(dead)}
        for topic, seats in after.workers.items():
            assert set(last.workers[topic]) - {dead} <= set(seats)
    assert decide(view.following(first.members, 9), asked, policy, balance).workers == before.workers


@given(sizes, st.data(), st.sampled_from([0.0, 0.05, 0.3]))
def test_one_more_worker_adds_exactly_one_agent_to_one_topic(
    size: tuple[int, int, int, int], data: st.DataObject, epsilon: float
) -> None:
    """K -> k + 1 moves the (k + 1)-th agent and nothing else, whoever has departed before."""
    agents, departed, count, workers = size
    view, asked = fleet(agents, departed), topics(count)
    topic = data.draw(st.sampled_from(asked))
    lines = [
        decide(view, asked, FleetWorkers(default=workers, scaled={topic.identity: k}), Balance(epsilon=epsilon))
        for k in range(1, agents + 2)
    ]
    for k, (few, more) in enumerate(pairwise(lines), start=1):
        assert changed(few, more) <= {topic.identity}
        seats = more.workers[topic.identity]
        assert seats[:k] == few.workers[topic.identity]
        assert len(seats) == min(k + 1, agents)


@given(st.integers(2, 10), st.integers(1, 40))
def test_without_a_tight_bound_the_agents_are_the_top_of_the_rendezvous(agents: int, workers: int) -> None:
    """The rank is by HRW; the bound only skips full agents."""
    view = View(tuple(Agent(f"agent-{n}", capacity=1 + n % 3) for n in range(agents)))
    made = decide(view, topics(30), FleetWorkers(default=workers), Balance(epsilon=1000))
    rank = Rendezvous(view.ids, {a.id: a.capacity for a in view.members})
    assert all(list(seats) == rank.top(topic, workers) for topic, seats in made.workers.items())


def test_twice_the_capacity_is_twice_the_load() -> None:
    """Weighted fair shares, within the bound; and one that could read more than there is reads all."""
    view = View((Agent("a", 2), Agent("b"), Agent("c"), Agent("d", 1e9)))
    loads = decide(view, topics(300), FleetWorkers(default=2)).loads
    assert loads["d"] == 300
    assert 140 <= loads["a"] <= 157
    assert 60 <= loads["b"] <= 78
    assert 60 <= loads["c"] <= 78


def test_an_override_wins_over_the_autoscaler_that_over_a_pattern_that_over_the_default() -> None:
    """Numbers and names, by name on all clusters or on one."""
    view, asked = fleet(5), topics(8)
    policy = FleetWorkers(
        default=1,
        patterns={"t[12]": 2, "s1/t3": 4},
        scaled={"t2": 3, "s0/t3": 2},
        overrides={"s0/t2": 5, "s1/t2": ("agent-4", "agent-0", "nobody")},
    )
    by_label = {t.label: decide(view, asked, policy).workers[t.identity] for t in asked}
    assert {label: len(seats) for label, seats in by_label.items()} == {
        "s0/t0": 1,
        "s1/t0": 1,
        "s0/t1": 2,
        "s1/t1": 2,
        "s0/t2": 5,
        "s1/t2": 3,
        "s0/t3": 2,
        "s1/t3": 4,
    }
    assert by_label["s1/t2"][:2] == ("agent-4", "agent-0")
    assert "'nobody' does not live" in policy.unknown(asked, view.ids)[0]


def test_any_number_of_overrides_that_cannot_apply_is_a_few_sentences() -> None:
    """Each sentence is a line of the log and a part of the status: a file of 100,000 names would stop all agents."""
    names = [f"t{number}" for number in range(100_000)]
    topics = [FleetTopic("c", name, name) for name in names]
    found = FleetWorkers(overrides=dict.fromkeys(names, 2)).unknown([], ["a"])
    assert [found[0], *found[5:]] == [
        "override for 't0': there is no such topic",
        "99995 more overrides: there is no such topic",
    ]
    found = FleetWorkers(overrides=dict.fromkeys(names, ("a", "gone"))).unknown(topics, ["a"])
    assert [found[0], *found[5:]] == [
        "override for 't0': agent 'gone' does not live, the next in line stands in",
        "99995 more overrides: an agent does not live, the next in line stands in",
    ]
    assert len(FleetWorkers(overrides=dict.fromkeys(names[:5], 2)).unknown([], ["a"])) == 5


def test_who_was_said_to_be_next_is_next() -> None:
    """`explain` predicts the effect of a death or of one more worker, and gives each agent a reason."""
    view, asked, policy = fleet(6), topics(40), FleetWorkers(default=2)
    before = decide(view, asked, policy)
    line = explain(before, asked[7].identity, policy)
    assert [place.rank for place in line.places] == [1, 2, 3, 4, 5, 6]
    assert sum(place.reads for place in line.places) == 2
    assert all(place.reason for place in line.places)
    for agent, successor in line.next.items():
        after = decide(view.without(agent), asked, policy).workers[asked[7].identity]
        assert set(after) - set(before.workers[asked[7].identity]) == {successor}


def test_nobody_reads_where_nobody_lives() -> None:
    """An empty fleet is no error: the next view may have agents."""
    assert set(decide(View(), topics(3)).workers.values()) == {()}
    assert decide(View(departed=(Agent("a"),)), topics(3)).connections == 0


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: Agent(""), FleetError),
        (lambda: Agent("a", 0), FleetError),
        (lambda: Agent("a", math.nan), FleetError),
        (lambda: View((Agent("a"), Agent("a"))), FleetError),
        (lambda: decide(fleet(1), [*topics(1), *topics(1)]), FleetError),
        (lambda: Balance(epsilon=-1), BoundError),
        (lambda: FleetWorkers(default=0), WorkersError),
        (lambda: FleetWorkers(patterns={"(": 1}), WorkersError),
        (lambda: FleetWorkers(overrides={"t": ()}), WorkersError),
    ],
    ids=["id", "capacity", "nan", "view", "topic", "epsilon", "default", "pattern", "override"],
)
def test_what_has_no_meaning_is_refused(wrong: object, error: type[Exception]) -> None:
    """The constructor raises, with the value in the message."""
    assert callable(wrong)
    with pytest.raises(error):
        wrong()


@pytest.mark.parametrize("departed", [0, 20])
@pytest.mark.parametrize("agents", [4, 30, 100])
def test_no_number_of_workers_costs_more_than_a_few_levels(
    agents: int, departed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with 800 workers for one topic stopped all agents at the same time for 10 s, longer with more topics."""
    levels: list[int] = []
    add_level = Seating.add_level

    def counted(seating: Seating, wanted: Sequence[int]) -> None:
        levels.append(sum(wanted))
        add_level(seating, wanted)

    monkeypatch.setattr(Seating, "add_level", counted)
    view, asked = fleet(agents, departed), topics(300)
    for number in (1, agents // 2, agents - 1, agents, 800, 2**31):
        levels.clear()
        made = decide(view, asked, FleetWorkers(overrides={"s1/t1": number}))
        assert len(made.workers[asked[3].identity]) == min(number, agents)
        assert len(levels) <= 1 + 8, "each level is a seat for every topic"


def test_each_place_of_a_ranking_is_looked_at_once_however_many_workers_all_topics_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """99 of 100 agents for each of 300 topics took a quarter of a second in every agent: each seat began at the top."""
    looked = 0
    best = Seating._best

    def counted(seating: Seating, level: Level, topic: int, begin: int = 0) -> tuple[int, int | None]:
        nonlocal looked
        place, agent = best(seating, level, topic, begin)
        looked += place - begin + 1
        return place, agent

    monkeypatch.setattr(Seating, "_best", counted)
    made = decide(fleet(50), topics(60), FleetWorkers(default=49))
    assert all(len(agents) == 49 for agents in made.workers.values())
    assert looked <= 60 * (50 + 49), "agents, and the agent found last once more for each seat"


@pytest.mark.parametrize(
    "workers", [FleetWorkers(default=99), FleetWorkers(overrides={f"t{n}": 800 for n in range(500)})]
)
def test_departures_cost_little_however_many_workers_all_topics_have(
    workers: FleetWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """99 planned workers of each of 1,000 topics took 2 s in every agent after many had left: each seat was moved."""
    searches = 0
    best = Seating._best

    def counted(seating: Seating, level: Level, topic: int, begin: int = 0) -> tuple[int, int | None]:
        nonlocal searches
        searches += 1
        return best(seating, level, topic, begin)

    monkeypatch.setattr(Seating, "_best", counted)
    made = decide(fleet(60, departed=40), topics(1_000), workers)
    assert {len(agents) for agents in made.workers.values()} == {60}
    assert searches <= 2 * 16_384


@given(st.integers(12, 30), st.data())
def test_agents_beyond_the_levels_are_added_and_leave_one_at_a_time(agents: int, data: st.DataObject) -> None:
    """They are added only by rank: one more adds one agent at the end, and a death moves the dead agent's place."""
    view, asked = fleet(agents), topics(20)
    k = data.draw(st.integers(8, agents - 2))
    few, more = (decide(view, asked, FleetWorkers(overrides={"s1/t1": n})) for n in (k, k + 1))
    topic = asked[3].identity
    assert more.workers[topic][:k] == few.workers[topic]
    assert changed(few, more) == {topic}
    dead = data.draw(st.sampled_from(more.workers[topic]))
    after = decide(view.without(dead), asked, FleetWorkers(overrides={"s1/t1": k + 1}))
    assert set(more.workers[topic]) - {dead} < set(after.workers[topic])
    assert changed(more, after) <= {one.identity for one in more.of(dead)}
