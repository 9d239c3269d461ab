"""Plans that balance the volume of partitions: valid, even, stable, and only where weights are given."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import Member, Topic, WeightError, plan
from assignors.planner.plan_result import Plan

SEEDS = st.integers(0, 9999)


def topics_of(random: Random, count: int) -> tuple[list[Topic], dict[str, float]]:
    """Topics with the volumes of small ones and a few large ones."""
    topics = [Topic(f"t{n:03}", random.choice((1, 1, 3, 6))) for n in range(count)]
    return topics, {topic.name: random.lognormvariate(0, 1.5) for topic in topics}


def again(made: Plan, members: list[Member]) -> list[Member]:
    """The members with what the plan gave them."""
    return [
        Member(one.id, one.topics, weight=one.weight, owned=frozenset(made.partitions.get(one.id, ())), generation=1)
        for one in members
    ]


@settings(max_examples=60, deadline=None)
@given(
    SEEDS, st.integers(1, 30), st.integers(1, 8), st.sampled_from([None, 1, 2, 3]), st.sampled_from(["hrw", "shuffled"])
)
def test_a_plan_by_volume_is_valid_and_a_fixed_point(
    seed: int,
    count: int,
    people: int,
    workers: int | None,
    strategy: Any,
) -> None:
    """Each partition has one subscriber, no topic more readers than its cap, and the same input again moves nothing."""
    random = Random(seed)
    topics, weights = topics_of(random, count)
    names = [t.name for t in topics]
    members = [
        Member(
            f"m{n}",
            frozenset(random.sample(names, random.randint(1, count)) if seed % 2 else names),
            weight=random.choice((1.0, 1.0, 2.0)),
        )
        for n in range(people)
    ]
    made = plan(topics, members, workers=workers, weights=weights, strategy=strategy)
    read = {name for one in members for name in one.topics}
    owners = [pair for mine in made.partitions.values() for pair in mine]
    assert len(owners) == len(set(owners)) == sum(t.partitions for t in topics if t.name in read)
    for one in members:
        assert {topic for topic, _ in made.partitions[one.id]} <= one.topics
    for topic in topics:
        readers = [one for one, mine in made.partitions.items() if topic.name in {name for name, _ in mine}]
        assert workers is None or len(readers) <= workers
    shuffled = random.sample(again(made, members), people)
    assert plan(random.sample(topics, count), shuffled, workers=workers, weights=weights, strategy=strategy).moved == 0


@pytest.mark.parametrize("workers", [None, 1, 2])
def test_volumes_are_even_where_numbers_are_not(workers: int | None) -> None:
    """The reason for weights: by number, the member with two large topics reads twice as much as the mean."""
    random = Random(5)
    topics = [Topic(f"t{n:03}", 3) for n in range(224)]
    weights = {topic.name: random.lognormvariate(0, 1.0) for topic in topics}
    members = [Member(f"m{n}", frozenset(weights)) for n in range(10)]

    def largest(made: Plan) -> float:
        sums = [sum(weights[topic] / 3 for topic, _ in mine) for mine in made.partitions.values()]
        return max(sums) / (sum(sums) / len(sums))

    even, uneven = plan(topics, members, workers=workers, weights=weights), plan(topics, members, workers=workers)
    assert largest(even) <= 1.10 < largest(uneven)
    assert max(even.volumes.values()) == pytest.approx(largest(even) * sum(weights.values()) / 10)
    for change in (again(even, [*members, Member("new", frozenset(weights))]), again(even, members[1:])):
        after = plan(topics, change, workers=workers, weights=weights)
        assert largest(after) <= 1.10
        # A newcomer takes about a tenth of the volume, of which few partitions hold most.
        assert after.moved <= 672 * 0.15
        assert min(after.volumes.values()) > 0.8 * sum(weights.values()) / len(change)


def test_a_member_that_leaves_moves_only_its_partitions_if_there_is_room() -> None:
    """Claims are kept first; without a load above its bound none of them moves."""
    random = Random(9)
    topics = [Topic(f"t{n}", 3) for n in range(60)]
    weights = {topic.name: random.uniform(1, 2) for topic in topics}
    members = [Member(f"m{n}", frozenset(weights)) for n in range(6)]
    before = plan(topics, members, weights=weights, epsilon=0.2)
    assert plan(topics, again(before, members)[1:], weights=weights, epsilon=0.2).moved == 0


def test_a_capped_topic_is_divided_evenly_among_its_readers() -> None:
    """An uneven division would let the volume of one reader grow with the topic."""
    topics, members = [Topic("a", 12), Topic("b", 12)], [Member(f"m{n}", frozenset("ab")) for n in range(4)]
    made = plan(topics, members, workers=2, weights={"a": 3.0, "b": 3.0})
    for topic in "ab":
        shares = [n for mine in made.partitions.values() if (n := sum(name == topic for name, _ in mine))]
        assert shares == [6, 6]


def test_a_rack_decides_between_members_with_room() -> None:
    """Bytes from other zones cost money; balance comes before."""
    topics = [Topic(f"t{n}", 1, racks=[frozenset({"abc"[n % 3]})]) for n in range(60)]
    members = [Member(f"m{n}", frozenset(t.name for t in topics), rack="abc"[n]) for n in range(3)]
    weights = {topic.name: 1.0 for topic in topics}
    assert plan(topics, members, weights=weights).off_rack == 0
    assert plan(topics, [Member(m.id, m.topics) for m in members], weights=weights).off_rack == 0


def test_without_weights_plans_are_those_by_number() -> None:
    """Weights are asked for, also where a function has measured none yet."""
    topics, _ = topics_of(Random(3), 20)
    members = [Member(f"m{n}", frozenset(t.name for t in topics)) for n in range(4)]
    usual = plan(topics, members)
    assert plan(topics, members, weights={}).partitions == plan(topics, members, weights=None).partitions
    assert plan(topics, members, weights={}).partitions == usual.partitions
    assert usual.volumes == {member: float(load) for member, load in usual.loads.items()}


def test_an_idle_or_unknown_topic_is_placed_like_any_other() -> None:
    """A volume of 0 for all of them would put them all onto one member."""
    topics = [Topic(f"t{n}", 1) for n in range(40)]
    members = [Member(f"m{n}", frozenset(t.name for t in topics)) for n in range(4)]
    for weights in ({t.name: 0.0 for t in topics}, {"other": 5.0}):
        assert set(plan(topics, members, weights=weights).loads.values()) == {10}


def test_the_explanation_knows_no_full_number() -> None:
    """A member with few large partitions is not full by their number."""
    topics = [Topic("large", 1), *(Topic(f"t{n}", 1) for n in range(9))]
    members = [Member(f"m{n}", frozenset(t.name for t in topics)) for n in range(2)]
    made = plan(topics, members, weights={"large": 100.0, **{f"t{n}": 1.0 for n in range(9)}})
    assert sorted(made.loads.values()) == [1, 9]
    assert not any("full" in one.reason for topic in topics for one in made.explain(topic.name))


@pytest.mark.parametrize(
    "weights", [{"a": -1.0}, {"a": float("nan")}, {"a": float("inf")}, {"a": True}, {"a": "1"}, ["a"]]
)
def test_weights_that_cannot_be_are_refused(weights: Any) -> None:
    """In one sentence with the topic."""
    with pytest.raises(WeightError, match="weight"):
        plan([Topic("a", 2)], [Member("m", frozenset("a"))], weights=weights)
