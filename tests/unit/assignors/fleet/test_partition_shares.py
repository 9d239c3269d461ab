"""Shares of a topic's partitions: even, complete, and with few moves."""

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.fleet import Agent, Decision, FleetTopic, FleetWorkers, View, decide
from assignors.fleet.partition_shares import partition_shares

AGENTS = [f"agent-{n}" for n in range(8)]
PARTITIONS = st.integers(0, 30)
TOPIC = st.integers(0, 99).map(lambda n: f"cluster/id-{n}")
SEATS = st.lists(st.sampled_from(AGENTS), min_size=1, unique=True)


def owners(shares: Mapping[str, Sequence[int]]) -> dict[int, str]:
    """The agent of each partition."""
    return {number: agent for agent, mine in shares.items() for number in mine}


def moved(before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]]) -> set[int]:
    """The partitions with another agent than before."""
    old = owners(before)
    return {number for number, agent in owners(after).items() if old[number] != agent}


@given(topic=TOPIC, partitions=PARTITIONS, planned=SEATS, seated=SEATS)
def test_shares_are_even_and_complete(topic: str, partitions: int, planned: list[str], seated: list[str]) -> None:
    """For all planned and seated agents: each partition has one reader, and no agent reads two partitions more."""
    shares = partition_shares(topic, partitions, planned, seated)
    assert list(shares) == seated
    assert sorted(number for mine in shares.values() for number in mine) == list(range(partitions))
    sizes = [len(mine) for mine in shares.values()]
    assert max(sizes) - min(sizes) <= 1
    assert shares == partition_shares(topic, partitions, planned, seated)


@given(topic=TOPIC, partitions=PARTITIONS, seats=SEATS)
def test_one_more_seat_moves_only_its_own_share(topic: str, partitions: int, seats: list[str]) -> None:
    """The autoscaler adds an agent at the end: it takes the smallest even share, and nothing moves between others."""
    before = partition_shares(topic, partitions, seats[:-1] or seats, seats[:-1] or seats)
    after = partition_shares(topic, partitions, seats, seats)
    if len(seats) > 1:
        assert moved(before, after) == set(after[seats[-1]])
        assert len(after[seats[-1]]) == partitions // len(seats)


@given(topic=TOPIC, partitions=PARTITIONS, seats=SEATS, gone=st.sets(st.sampled_from(AGENTS)), spare=st.booleans())
def test_a_departure_moves_only_the_partitions_of_the_departed(
    topic: str, partitions: int, seats: list[str], gone: set[str], *, spare: bool
) -> None:
    """With a stand-in for each, or with none: agents that stay keep what they have."""
    before = partition_shares(topic, partitions, seats, seats)
    left = [f"stand-in-{agent}" if spare else agent for agent in seats if spare or agent not in gone]
    left = [agent.removeprefix("stand-in-") if agent.removeprefix("stand-in-") not in gone else agent for agent in left]
    if not left:
        return
    after = partition_shares(topic, partitions, seats, left)
    assert moved(before, after) == {number for agent in gone & set(seats) for number in before[agent]}


def test_without_agents_there_are_no_shares() -> None:
    """The first agent of a fleet may not be there yet."""
    assert partition_shares("c/t", 3, [], []) == {}


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
