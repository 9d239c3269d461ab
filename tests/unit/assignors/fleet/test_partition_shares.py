"""Shares of a topic's partitions: even, complete, and with few moves."""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.fleet import Agent, Decision, FleetTopic, FleetWorkers, View, decide
from assignors.fleet.partition_shares import partition_shares

AGENTS = [f"agent-{n}" for n in range(8)]
PARTITIONS = st.integers(0, 30)
SEATS = st.lists(st.sampled_from(AGENTS), min_size=1, unique=True)


def owners(shares: Mapping[str, Sequence[int]]) -> dict[int, str]:
    """The agent of each partition."""
    return {number: agent for agent, mine in shares.items() for number in mine}


def moved(before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]]) -> set[int]:
    """The partitions with another agent than before."""
    old = owners(before)
    return {number for number, agent in owners(after).items() if old[number] != agent}


@given(partitions=PARTITIONS, planned=SEATS, seated=SEATS)
def test_shares_are_even_and_complete(partitions: int, planned: list[str], seated: list[str]) -> None:
    """For all planned and seated agents: each partition has one reader, and no agent reads two partitions more."""
    shares = partition_shares(partitions, planned, seated)
    assert list(shares) == seated
    assert sorted(number for mine in shares.values() for number in mine) == list(range(partitions))
    sizes = [len(mine) for mine in shares.values()]
    assert max(sizes) - min(sizes) <= 1
    assert shares == partition_shares(partitions, planned, seated)


@given(partitions=st.integers(0, 400), seats=st.integers(1, 50))
def test_one_more_seat_moves_only_its_own_share(partitions: int, seats: int) -> None:
    """The autoscaler adds or removes the last agent: nothing moves between others, and no more than an even share.

    The share may be the larger one of two even shares: a sequence that keeps old partitions while a topic grows
    requires this.
    """
    names = [f"agent-{number}" for number in range(seats + 1)]
    before = partition_shares(partitions, names[:-1], names[:-1])
    after = partition_shares(partitions, names, names)
    assert moved(before, after) == set(after[names[-1]])
    assert partitions // (seats + 1) <= len(after[names[-1]]) <= math.ceil(partitions / (seats + 1))


@given(partitions=st.integers(0, 400), seats=st.integers(2, 50), gone=st.integers(0, 49))
def test_shares_of_many_agents_are_even_and_a_death_moves_no_other_partition(
    partitions: int, seats: int, gone: int
) -> None:
    """Beyond the sixth seat the sequences end, and another rule continues."""
    names = [f"agent-{number}" for number in range(seats)]
    dead = names[gone % seats]
    before = partition_shares(partitions, names, names)
    after = partition_shares(partitions, names, [name for name in names if name != dead])
    for shares in before, after:
        assert sorted(number for mine in shares.values() for number in mine) == list(range(partitions))
        assert max(map(len, shares.values())) - min(map(len, shares.values())) <= 1
    assert moved(before, after) == set(before[dead])


@given(partitions=PARTITIONS, seats=SEATS, gone=st.sets(st.sampled_from(AGENTS)), spare=st.booleans())
def test_a_departure_moves_only_the_partitions_of_the_departed(
    partitions: int, seats: list[str], gone: set[str], *, spare: bool
) -> None:
    """With a stand-in for each, or with none: agents that stay keep what they have."""
    before = partition_shares(partitions, seats, seats)
    left = [f"stand-in-{agent}" if spare else agent for agent in seats if spare or agent not in gone]
    left = [agent.removeprefix("stand-in-") if agent.removeprefix("stand-in-") not in gone else agent for agent in left]
    if not left:
        return
    after = partition_shares(partitions, seats, left)
    assert moved(before, after) == {number for agent in gone & set(seats) for number in before[agent]}


@pytest.mark.parametrize("seats", range(1, 7))
def test_partitions_that_are_added_to_a_topic_move_no_other(seats: int) -> None:
    """With up to six agents balance requires no move, whatever the numbers before and after."""
    names = AGENTS[:seats]
    all_of_them = owners(partition_shares(130, names, names))
    for partitions in range(130):
        few = owners(partition_shares(partitions, names, names))
        assert few.items() <= all_of_them.items()


@settings(max_examples=40, deadline=None)
@given(seats=st.integers(7, 40), partitions=st.integers(1, 400), more=st.integers(1, 400))
def test_partitions_that_are_added_to_a_topic_of_many_agents_move_some_others(
    seats: int, partitions: int, more: int
) -> None:
    """No even sequence is used for so many seats; the docstring of the module states this bound."""
    names = [f"agent-{number}" for number in range(seats)]
    before = owners(partition_shares(partitions, names, names))
    after = owners(partition_shares(partitions + more, names, names))
    assert sum(before[number] != after[number] for number in before) <= seats * math.sqrt(partitions) / 2


@pytest.mark.parametrize("seats", [1, 3, 50])
@pytest.mark.parametrize("gone", [0, 1])
def test_shares_of_ten_thousand_partitions_are_computed_at_once(seats: int, gone: int) -> None:
    """Every agent computes them at each view. A time that grows with the square of the partitions is minutes here."""
    names = [f"agent-{number}" for number in range(seats)]
    began_s = time.thread_time()
    partition_shares(10_000, names, names[gone:])
    assert time.thread_time() - began_s < 1.0, "about 0.05 s on a machine at rest"


def test_without_agents_there_are_no_shares() -> None:
    """The first agent of a fleet may not be there yet."""
    assert partition_shares(3, [], []) == {}


def _shares(made: Decision, topic: FleetTopic) -> dict[str, list[int]]:
    found = {one.id: [t for t in made.shares_of(one.id) if t.identity == topic.identity] for one in made.view.members}
    return {agent: list(topics[0].share or ()) for agent, topics in found.items() if topics}


@settings(max_examples=40)
@given(
    agents=st.integers(1, 6),
    workers=st.one_of(st.none(), st.integers(1, 4)),
    partitions=st.integers(1, 13),
    deaths=st.lists(st.integers(0, 5), max_size=3),
)
def test_agents_of_one_view_divide_each_topic_evenly_and_a_death_moves_no_other_partition(
    agents: int, workers: int | None, partitions: int, deaths: list[int]
) -> None:
    """Each agent computes its own share alone: together they are the topic, also after deaths; a return undoes it."""
    topics = [FleetTopic("c", f"id-{n}", f"t{n}", "s", partitions) for n in range(5)]
    view = View(tuple(Agent(f"agent-{n}") for n in range(agents)), 1)
    asked = FleetWorkers(default=workers)
    first = made = decide(view, topics, asked)
    for number in deaths:
        name = f"agent-{number}"
        if name not in view.ids or len(view.ids) == 1:
            continue
        before, view = made, view.without(name)
        made = decide(view, topics, asked)
        for topic in topics:
            old, new = _shares(before, topic), _shares(made, topic)
            assert sorted(owners(new)) == list(range(partitions))
            seated = Counter(dict.fromkeys(made.workers[topic.identity], 0))
            seated.update({agent: len(mine) for agent, mine in new.items()})
            assert max(seated.values()) - min(seated.values()) <= 1
            if len(before.view.departed) == 0:
                assert moved(old, new) == set(old.get(name, ()))
    back = decide(view.following([Agent(f"agent-{n}") for n in range(agents)], 99), topics, asked)
    assert all(_shares(back, topic) == _shares(first, topic) for topic in topics)
