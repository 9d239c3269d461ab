"""An agent that cannot reach a cluster says so, and others read that cluster's topics."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.fleet import Agent, FleetTopic, FleetWorkers, View, decide, explain, settings_drift
from assignors.fleet.lanes import computes_alike
from assignors.fleet.topic_descriptions import Sighting
from assignors.fleet.unreached_clusters import UnreachedClusters
from tests.unit.assignors.fleet.model_fleet import ModelAgent, Server, readers

HOME = tuple(FleetTopic("c0", f"id-{n}", f"t{n}", "s", 3) for n in range(9))
PLANT = tuple(FleetTopic("c1", f"id-{n}", f"p{n}", "s1", 3) for n in range(9))
NEVER = Sighting(problems=("s1: no broker answers",), answers=False)
UNDESCRIBED = Sighting(cluster="c1", problems=("s1: 9 topics cannot be described",), whole=False)
SEEN = Sighting(cluster="c0", topics=HOME), Sighting(cluster="c1", topics=PLANT)
AWAY_S = 16.0
NOTHING = st.sampled_from(["", "clusters.away=s1", "clusters.unknown=s1"])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time of all agents, which a test sets."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return iter([now])


def settle(agents: list[ModelAgent]) -> None:
    """All declare, and hear of what the others declare."""
    for one in agents * 3:
        one.step()


def names_of(agents: list[ModelAgent], topics: tuple[FleetTopic, ...]) -> dict[tuple[str, int], list[str]]:
    """The readers of these topics."""
    found = readers(agents, HOME + PLANT)
    return {key: who for key, who in found.items() if key[0] in {topic.name for topic in topics}}


def test_topics_of_a_cluster_that_one_agent_loses_go_to_agents_that_reach_it(clock: Iterator[list[float]]) -> None:
    """They waited until it reached the cluster again. Nothing else moves, and after its return it gets them back."""
    (now,) = clock
    server = Server()
    agents = [ModelAgent(name, server, *SEEN) for name in "abc"]
    settle(agents)
    before = readers(agents, HOME + PLANT)
    assert any(who == ["b"] for who in names_of(agents, PLANT).values())
    agents[1].watches[1].sighting = replace(SEEN[1], answers=False, problems=("s1: no broker answers",))
    settle(agents)
    assert readers(agents, HOME + PLANT) == before, "a short loss moves nothing"
    now[0] += AWAY_S
    settle(agents)
    lost = readers(agents, HOME + PLANT)
    assert {len(who) for who in lost.values()} == {1}
    assert not any("b" in who for who in names_of(agents, PLANT).values())
    assert {key: who for key, who in lost.items() if before[key] != ["b"]} == {
        key: who for key, who in before.items() if who != ["b"]
    }
    assert names_of(agents, HOME) == {key: who for key, who in before.items() if key[0].startswith("t")}
    assert all(lane.seated for one in agents for lane in one.ingestion.lanes)
    assert not [one for agent in agents for one in agent.loop.status()["problems"] if "differ" in one]
    agents[1].watches[1].sighting = SEEN[1]
    settle(agents)
    assert readers(agents, HOME + PLANT) == lost, "it may be lost again at once"
    now[0] += AWAY_S
    settle(agents)
    assert readers(agents, HOME + PLANT) == before


@pytest.mark.parametrize("never", [NEVER, UNDESCRIBED], ids=["no answer", "no controller"])
def test_an_agent_that_has_never_reached_a_cluster_leaves_no_topic_without_a_reader(
    never: Sighting, clock: Iterator[list[float]]
) -> None:
    """It does not know that cluster's topics, so it would compute other places for the topics of its other clusters."""
    (now,) = clock
    server = Server()
    agents = [ModelAgent(name, server, *SEEN) for name in "abc"]
    agents.append(ModelAgent("d", server, SEEN[0], never))
    settle(agents)
    found = readers(agents, HOME + PLANT)
    assert {len(who) for who in found.values()} == {1}
    assert any("d" in who for who in found.values())
    assert not any("d" in who for who in names_of(agents, PLANT).values())
    agents[3].watches[1].sighting = SEEN[1]
    now[0] += 1
    settle(agents)
    assert {len(who) for who in readers(agents, HOME + PLANT).values()} == {1}
    assert any("d" in who for who in names_of(agents, PLANT).values())


@given(
    st.lists(NOTHING, min_size=1, max_size=6),
    st.integers(0, 2),
    st.integers(1, 4),
    st.dictionaries(st.sampled_from(["t0", "p0", "p1"]), st.sampled_from([("a0",), ("a1", "a0")])),
)
def test_every_topic_has_its_workers_among_the_agents_that_reach_it_if_any_does(
    declared: list[str], departed: int, workers: int, pinned: dict[str, tuple[str, ...]]
) -> None:
    """And an agent that does not know a cluster computes the same places for the topics that it knows."""
    members = tuple(Agent(f"a{n}", settings=tuple(filter(None, [one]))) for n, one in enumerate(declared))
    view = View(members, 1, tuple(Agent(f"gone{n}") for n in range(departed)))
    numbers = FleetWorkers(default=workers, overrides=pinned)
    made = decide(view, HOME + PLANT, numbers)
    reach = {agent.id for agent in members if not agent.settings}
    if "clusters.unknown=s1" in declared:
        assert decide(view, HOME, numbers).workers == {topic.identity: made.workers[topic.identity] for topic in HOME}
    for topic in PLANT:
        seated = made.workers[topic.identity]
        if reach:
            assert set(seated) <= reach
            assert len(seated) == min(numbers.wanted(topic) or 0, len(reach))
        assert seated
    partitions: dict[str, list[int]] = {}
    for agent in view.ids:
        for one in made.shares_of(agent):
            partitions.setdefault(one.identity, []).extend(one.share or ())
    assert all(sorted(partitions[topic.identity]) == [0, 1, 2] for topic in HOME + PLANT)


def test_an_unreached_cluster_is_no_difference_of_settings_and_is_explained() -> None:
    """Else one lost connection would send all agents to their groups."""
    view = View((Agent("a", settings=("lanes=4",)), Agent("b", settings=("clusters.away=s1", "lanes=4"))), 1)
    assert not settings_drift(view.members)
    assert computes_alike(view)
    line = explain(decide(view, PLANT), PLANT[0].identity)
    assert [one.reason for one in line.places if one.agent == "b"] == ["does not reach the cluster"]


def test_a_cluster_that_comes_and_goes_is_declared_seldom() -> None:
    """Each declaration is a new view for all agents."""
    mine, agent = UnreachedClusters(after_s=15.0), Agent("a", settings=("lanes=4",))
    said = []
    for second in range(0, 200, 5):
        mine.look({"s": True, "s1": second % 20 < 10}, float(second))
        said.append(mine.declared(agent).settings)
    assert set(said) == {("lanes=4",)}
