"""Topics are placed near their replicas as far as the balance allows, and by all agents alike."""

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.fleet import Agent, FleetTopic, FleetWorkers, View, agreed_zones, decide, explain
from assignors.fleet.topic_descriptions import Sighting, _zones
from tests.unit.assignors.fleet.model_fleet import ModelAgent, Server, readers

ZONES = ("az-a", "az-b", "az-c")
NAMES = "abcdef"


def topics(count: int, zones: int = 1) -> list[FleetTopic]:
    """Topics whose replicas are in some of three zones."""
    return [
        FleetTopic("c", f"id-{n}", f"t{n}", "s", 2, zones=tuple(sorted(ZONES[(n + k) % 3] for k in range(zones))))
        for n in range(count)
    ]


def fleet(count: int, zones: tuple[str | None, ...] = ZONES) -> View:
    """Agents in the zones in turn."""
    return View(tuple(Agent(f"agent-{n:02}", zone=zones[n % len(zones)]) for n in range(count)), 1)


def share_near(view: View, some: list[FleetTopic], workers: int = 1) -> float:
    """The share of seats of agents in a zone of the topic's replicas."""
    zones = {agent.id: agent.zone for agent in view.members}
    made = decide(view, some, FleetWorkers(default=workers))
    near = [zones[agent] in topic.zones for topic in some for agent in made.workers[topic.identity]]
    return sum(near) / len(near)


@pytest.mark.parametrize(("replicas", "before", "after"), [(1, 1 / 3, 0.9), (2, 2 / 3, 0.97), (3, 1.0, 1.0)])
def test_most_topics_are_read_in_a_zone_of_their_replicas(replicas: int, before: float, after: float) -> None:
    """Without zones it is the share of the zones, and those bytes cross zones on every read."""
    some, view = topics(300, replicas), fleet(30)
    plain = decide(view, [replace(one, zones=()) for one in some])
    zones = {agent.id: agent.zone for agent in view.members}
    near = sum(zones[plain.workers[one.identity][0]] in one.zones for one in some) / len(some)
    assert near == pytest.approx(before, abs=0.1)
    assert share_near(view, some) >= after
    assert max(decide(view, some).loads.values()) <= max(plain.loads.values()), "the bound comes first"


@given(st.integers(1, 12), st.integers(0, 3), st.integers(1, 40), st.integers(1, 4), st.integers(1, 2))
def test_with_zones_a_death_moves_only_the_topics_of_that_agent_and_each_topic_has_its_workers(
    agents: int, departed: int, count: int, workers: int, zones: int
) -> None:
    """As without zones."""
    some, view = topics(count, zones), fleet(agents + departed, (*ZONES, None))
    for gone in view.ids[agents:]:
        view = view.without(gone)
    made = decide(view, some, FleetWorkers(default=workers))
    assert {len(who) for who in made.workers.values()} == {min(workers, agents)}
    dead = view.ids[0]
    after = decide(view.without(dead), some, FleetWorkers(default=workers))
    assert {t for t, who in after.workers.items() if who != made.workers[t]} <= {one.identity for one in made.of(dead)}


def test_agents_that_know_other_zones_place_topics_as_without_zones_until_all_know_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a topic could have no reader: each agent would leave it to another one."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    some = topics(24)
    blind = Sighting(cluster="c", topics=tuple(replace(one, zones=()) for one in some))
    knows = Sighting(cluster="c", topics=tuple(some))
    server = Server()
    agents = [
        ModelAgent(name, server, blind if name == "f" else knows, zone=ZONES[n % 3]) for n, name in enumerate(NAMES)
    ]
    zone = {agent.name: agent.members.agent.zone for agent in agents}
    of = {one.name: one.zones for one in some}

    def near() -> float:
        for one in agents * 3:
            one.step()
        found = readers(agents, some)
        assert {len(who) for who in found.values()} == {1}
        return sum(zone[who] in of[name] for (name, _), (who,) in found.items()) / len(found)

    assert near() < 0.6
    agents[-1].watch.sighting = knows
    assert near() > 0.9
    assert all(lane.seated for one in agents for lane in one.ingestion.lanes)
    assert agreed_zones(server.view, some)
    agents[0].watch.sighting = blind
    assert near() > 0.9, "previous zones stay for a while"
    now += 60
    assert near() < 0.6
    assert agreed_zones(server.view, some) is None


def test_the_explanation_ranks_agents_in_the_zones_first() -> None:
    """It says who is next in line."""
    (topic,) = topics(1)
    line = explain(decide(fleet(6), [topic]), topic.identity)
    assert {one.agent for one in line.places[:2]} == {"agent-00", "agent-03"}


def test_a_broker_that_is_away_changes_no_zone() -> None:
    """The metadata then has its id, and no rack."""

    def said(*racks: str | None) -> Any:
        nodes = [SimpleNamespace(rack=one) for one in racks]
        return SimpleNamespace(topic_id="id-0", partitions=[SimpleNamespace(replicas=nodes)])

    known = FleetTopic("c", "id-0", "t0", zones=("az-a", "az-b"))
    assert _zones(said("az-b", "az-a", "az-b"), None) == ("az-a", "az-b")
    assert _zones(said("az-b", None), known) == ("az-a", "az-b")
    assert _zones(said("az-b", None), None) == ()
    assert _zones(said("az-b", None), replace(known, id="another")) == ()
