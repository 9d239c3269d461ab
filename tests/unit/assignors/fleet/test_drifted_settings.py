"""Settings that all agents must share."""

import pytest

from assignors.fleet import (
    Agent,
    FleetTopic,
    FleetWorkers,
    Lanes,
    View,
    decide,
    declared_settings,
    settings_drift,
)
from assignors.fleet.kafka_membership import Candidate, MembershipRound, next_round

TOPICS = [FleetTopic("c", f"id-{n}", f"t{n}", "s") for n in range(40)]


def agent(name: str, **settings: object) -> Agent:
    """An agent that declares these."""
    return Agent(name, settings=declared_settings(settings))


def test_a_setting_that_differs_is_named_with_its_agents() -> None:
    """The majority comes first; numbers are readable, other values are digests; older versions declare nothing."""
    fleet = [agent(name, lanes=4, seed=0, patterns=[["a", 1]]) for name in ("a", "b", "c", "d")]
    assert settings_drift([*fleet, Agent("old")]) == []
    found = settings_drift([*fleet, agent("e", lanes=8, seed=0)])
    assert found[0] == "setting 'lanes' differs: 4 on a, b, c and 1 more, 8 on e; all agents need the same file"
    assert found[1].startswith("setting 'patterns' differs: #")
    assert found[1].endswith(" on a, b, c and 1 more, not set on e; all agents need the same file")
    assert len(found) == 2


@pytest.mark.parametrize("given", [None, "", [], {}], ids=repr)
def test_what_is_not_set_is_not_declared(given: object) -> None:
    """A view goes through every join of every agent."""
    assert declared_settings({"patterns": given}) == ()


def test_views_carry_settings_and_older_agents_stay_readable() -> None:
    """In a rolling upgrade either side leads: neither fails at the other's texts, and nothing moves."""
    new, old = agent("new", lanes=4), Agent("old")
    view = View((new, old), 7, (agent("gone", lanes=8),))
    assert View.of(view.value()) == view
    assert "settings" not in old.value()
    assert Agent.of({"id": "x", "settings": {}}).settings == (), "as Redis writes an empty list"
    stripped = MembershipRound(view=View((Agent("new"), old), 7))  # what an older leader makes of it
    made = next_round([Candidate(member=one.id, agent=one, process=one.id, last=stripped) for one in (new, old)])
    assert made.view.members == (new, old)
    assert decide(made.view, TOPICS).workers == decide(stripped.view, TOPICS).workers


@pytest.mark.parametrize(("before", "after"), [(4, 8), (8, 4), (1, 64)], ids=["more", "fewer", "one to all"])
def test_lanes_change_by_a_rolling_restart_without_a_topic_in_two_groups(before: int, after: int) -> None:
    """At each view all agents of a topic meet in one consumer group; in two, each would read all of its partitions."""
    names = ["a", "b", "c", "d"]
    view = View(tuple(agent(name, lanes=before) for name in names), 1)
    own = dict.fromkeys(names, before)
    used = []
    for name in names:
        own[name] = after
        left = view.without(name)
        view = left.following((*left.members, agent(name, lanes=after)), left.version + 1)
        for one in (left, view):
            made = decide(one, TOPICS, FleetWorkers(default=2))
            lanes = {who: Lanes(count=own[who]).agreed(one) for who in one.ids}
            for identity, readers in made.workers.items():
                assert len(readers) == 2
                assert len({lanes[who].lane(made.topics[identity]) for who in readers}) == 1
            used.append(next(iter(lanes.values())).count)
    assert used[-1] == after
    assert used == sorted(used, reverse=before > after), "one change, and no way back"


@pytest.mark.parametrize("told", ["lanes=0", "lanes=65", "lanes=x", "lanes", "lanes=-1"])
def test_a_number_of_lanes_that_has_no_meaning_is_passed_over(told: str) -> None:
    """An agent that gets an invalid number keeps its own."""
    assert Lanes(count=3).agreed(View((Agent("a", settings=(told,)),), 1)).count == 3


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3)])
@pytest.mark.parametrize("changed", ["", "a", "ab", "abc"])
def test_no_partition_is_without_a_reader_while_the_workers_change(before: int, after: int, changed: str) -> None:
    """Agents with other numbers compute other seats: a share that each of them gives to another one is not read."""
    workers = {name: after if name in changed else before for name in "abc"}
    declared = {"assignment": 1, "seed": 0}
    view = View(tuple(agent(name, **declared, **{"workers.default": workers[name]}) for name in "abc"), 1)
    topics = [FleetTopic("c", f"id-{n}", f"t{n}", "s", 6) for n in range(40)]
    read: set[tuple[str, int]] = set()
    for name in "abc":
        made = decide(view, topics, FleetWorkers(default=workers[name]))
        # The group assigns all partitions of a topic to the agents that read it.
        seated = Lanes().agreed(view).seated
        mine = made.shares_of(name) if seated else made.of(name)
        read |= {(topic.name, n) for topic in mine for n in (topic.share if seated else range(6)) or ()}
    assert len(read) == 240


def test_seats_do_not_wait_for_settings_that_may_differ() -> None:
    """The agents agree on lanes by themselves."""
    view = View((agent("a", assignment=1, lanes=4, seed=0), agent("b", assignment=1, lanes=8, seed=0)), 1)
    assert Lanes().agreed(view).seated


@pytest.mark.parametrize("former", [{}, {"division": 1}], ids=["not declared", "another number"])
def test_agents_that_divide_partitions_in_two_ways_let_the_groups_decide(former: dict[str, int]) -> None:
    """In a rolling upgrade: a partition that each of them gives to the other one would not be read."""
    declared = {"assignment": 1, "lanes": 4, "seed": 0}
    new, old = agent("new", division=2, **declared), agent("old", **declared, **former)
    assert Lanes().agreed(View((new, agent("other", division=2, **declared)), 1)).seated
    assert not Lanes().agreed(View((new, old), 1)).seated
    (said,) = settings_drift([new, old])
    assert said.startswith("setting 'division' differs: ")
    assert said.endswith("; all agents need the same version")
