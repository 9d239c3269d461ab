"""The planner: exactly optimal on small problems, and its promises on any."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import BoundError, Member, NodesError, Plan, StrategyError, Topic, TopicError, WorkersError, plan
from assignors.planner.assign_partitions import EXACT_CELLS
from assignors.planner.balance.large_groups import topic_by_topic_plan
from assignors.testing import random_scenario

FLAGS = ["equal", "weights", "racks", "capped"]


@pytest.mark.parametrize("mask", range(16))
def test_no_small_problem_has_a_better_plan(mask: int) -> None:
    """Validity, worker cap, loads, off-rack and moved are those of the best of all assignments."""
    flags = {name: bool(mask >> i & 1) for i, name in enumerate(FLAGS)}
    for seed in range(25):
        scenario = random_scenario(random.Random(seed * 16 + mask), **flags)
        made = plan(scenario.topics, scenario.members, epsilon=scenario.epsilon, workers=scenario.workers)
        assert scenario.goals_of(made) == scenario.best_goals(), (flags, seed)
        assert made.lower_bound <= made.moved


def group(members: int, sizes: list[int]) -> tuple[list[Topic], list[Member]]:
    """Make members that all read topics of these sizes."""
    topics = [Topic(f"t{i:03d}", n) for i, n in enumerate(sizes)]
    wanted = frozenset(t.name for t in topics)
    return topics, [Member(f"m{i}", wanted) for i in range(members)]


def owning(made: Plan, members: list[Member], generation: int = 1) -> list[Member]:
    """Return the members with the partitions of the plan."""
    return [Member(m.id, m.topics, owned=frozenset(made.partitions[m.id]), generation=generation) for m in members]


groups = st.tuples(st.integers(1, 12), st.lists(st.integers(0, 9), min_size=1, max_size=12))
epsilons = st.sampled_from([0.0, 0.05, 0.2, 1.0, 10.0])


@given(groups, epsilons, st.sampled_from(["hrw", "shuffled"]), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_of_the_input_means_nothing(
    shape: tuple[int, list[int]], epsilon: float, strategy: str, rng: random.Random
) -> None:
    """Every member can lead: the same plan from the same facts in any order."""
    topics, members = group(*shape)
    made = plan(topics, members, epsilon=epsilon, strategy=strategy)  # type: ignore[arg-type] # drawn from the two
    rng.shuffle(topics)
    rng.shuffle(members)
    assert plan(topics, members, epsilon=epsilon, strategy=strategy).partitions == made.partitions  # type: ignore[arg-type] # drawn from the two


@given(groups, epsilons, st.sampled_from([None, 1, 2, 3]))
@settings(max_examples=60, deadline=None)
def test_without_a_change_nothing_moves(shape: tuple[int, list[int]], epsilon: float, workers: int | None) -> None:
    """A rebalance that changes nothing leaves every partition where it is, with worker caps too."""
    topics, members = group(*shape)
    made = plan(topics, members, epsilon=epsilon, workers=workers)
    again = plan(topics, owning(made, members), epsilon=epsilon, workers=workers)
    assert again.moved == 0
    assert again.partitions == made.partitions


@given(groups, epsilons, st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_a_change_moves_the_lower_bound_and_loads_stay_bounded(
    shape: tuple[int, list[int]], epsilon: float, leave: int, join: int
) -> None:
    """Join and leave move as few claims as any plan within the bounds, and every member gets its share."""
    topics, members = group(*shape)
    before = plan(topics, members, epsilon=epsilon)
    stay = owning(before, members)[min(leave, len(members) - 1) :]
    after = plan(topics, [*stay, *(Member(f"n{i}", members[0].topics) for i in range(join))], epsilon=epsilon)
    assert after.moved == after.lower_bound
    fair = sum(t.partitions for t in topics) / len(after.loads)
    assert max(after.loads.values()) <= max((1 + epsilon) * fair, -(-fair // 1)) + 1e-9
    assert min(after.loads.values()) >= min((1 - epsilon) * fair, fair // 1) - 1e-9


@given(groups, st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_no_topic_has_more_readers_than_workers(shape: tuple[int, list[int]], workers: int) -> None:
    """The cap goes before balance."""
    topics, members = group(*shape)
    made = plan(topics, members, workers=workers)
    for topic in topics:
        assert sum(any(t == topic.name for t, _ in mine) for mine in made.partitions.values()) <= workers


@pytest.mark.parametrize("seed", range(5))
def test_a_join_takes_the_floor_of_the_fair_share(seed: int) -> None:
    """One more member takes floor(P / (N + 1)) partitions, and nothing moves between the others."""
    rng = random.Random(seed)
    topics, members = group(30, [rng.randint(1, 4) for _ in range(300)])
    before = plan(topics, members, epsilon=0)
    after = plan(topics, [*owning(before, members), Member("new", members[0].topics)], epsilon=0)
    assert after.moved == after.lower_bound == sum(t.partitions for t in topics) // 31 == after.loads["new"]


def test_topics_follow_rendezvous_where_bounds_are_wide() -> None:
    """HRW is the prior: with room for all, a one-partition topic goes to the first in rank."""
    topics, members = group(5, [1] * 40)
    made = plan(topics, members, epsilon=40)
    first = sum(made.explain(t.name)[0].gained == (0,) for t in topics)
    assert first >= 30


def test_partitions_of_a_topic_go_to_different_hosts_first() -> None:
    """Four consumers a host, named by host: three partitions of a topic are on three hosts."""
    topics = [Topic(f"t{i:02d}", 3) for i in range(40)]
    wanted = frozenset(t.name for t in topics)
    members = [Member(f"host{h}-{n}", wanted) for h in range(3) for n in range(4)]
    made = plan(topics, members)
    hosts = {
        t.name: {m.split("-")[0] for m, mine in made.partitions.items() for n, _ in mine if n == t.name} for t in topics
    }
    assert sum(len(h) == 3 for h in hosts.values()) >= 38


def test_weights_share_by_weight() -> None:
    """A member of weight 2 holds twice as much."""
    topics, members = group(3, [10] * 4)
    heavy = Member("big", members[0].topics, weight=2.0)
    assert plan(topics, [*members[:2], heavy], epsilon=0).loads == {"m0": 10, "m1": 10, "big": 20}


def test_two_members_of_one_identity_are_told_apart() -> None:
    """The same agent= given twice is a mistake that must not leave one of the two idle."""
    topics, members = group(2, [1] * 10)
    twins = [Member(m.id, m.topics, instance="agent") for m in members]
    assert sorted(plan(topics, twins).loads.values()) == [5, 5]


@pytest.mark.parametrize(
    ("settings_given", "error"),
    [
        ({"epsilon": -0.1}, BoundError),
        ({"epsilon": float("nan")}, BoundError),
        ({"epsilon": float("inf")}, BoundError),
        ({"epsilon": "0.1"}, BoundError),
        ({"epsilon": None}, BoundError),
        ({"epsilon": 10**400}, BoundError),
        ({"seed": "1"}, StrategyError),
        ({"seed": None}, StrategyError),
        ({"node": "("}, NodesError),
        ({"workers": 0}, WorkersError),
        ({"workers": {"t": -1}}, WorkersError),
        ({"workers": {"(": 1}}, WorkersError),
        ({"workers": True}, WorkersError),
        ({"strategy": "range"}, StrategyError),
        ({"rack_by": "isr"}, StrategyError),
    ],
)
def test_bad_settings_are_named(settings_given: dict[str, object], error: type[Exception]) -> None:
    """A wrong setting is an error that names the value."""
    with pytest.raises(error, match=r"epsilon=|workers|strategy=|rack_by=|node=|seed="):
        plan([Topic("t", 1)], [Member("m", frozenset("t"))], **settings_given)  # type: ignore[arg-type] # wrong on purpose


@pytest.mark.parametrize("count", [-1, 1.5, float("nan"), "3", None], ids=repr)
def test_a_number_of_partitions_is_whole(count: Any) -> None:
    """A part of a partition would be lost in silence."""
    with pytest.raises(TopicError, match="partitions="):
        Topic("t", count)


def test_the_seed_of_hash_changes_nothing() -> None:
    """PYTHONHASHSEED differs from process to process: each leader must make the same plan."""
    code = (
        "from assignors import Member, Topic, plan\n"
        "names = frozenset(f't{i}' for i in range(40))\n"
        "members = [Member(f'm{i}', names, rack='ab'[i % 2]) for i in range(7)]\n"
        "topics = [Topic(t, 3, racks=[frozenset('a'), frozenset('b'), frozenset('ab')]) for t in names]\n"
        "for settings in ({}, {'workers': 2}, {'strategy': 'shuffled'}):\n"
        "    print(plan(topics, members, **settings).partitions)\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(said) == 1
    assert "t39" in said.pop()


def test_a_topic_given_twice_is_an_error() -> None:
    """Two descriptions of a topic contradict each other."""
    with pytest.raises(TopicError, match="'t' is given twice"):
        plan([Topic("t", 1), Topic("t", 2)], [])


def test_without_keep_claims_mean_nothing() -> None:
    """keep=False is the classic deal: the plan is that of a group that owns nothing."""
    topics, members = group(4, [3] * 5)
    claimed = [Member(m.id, m.topics, owned=frozenset({("t000", i)}), generation=1) for i, m in enumerate(members)]
    fresh = plan(topics, members, strategy="shuffled", epsilon=0)
    assert plan(topics, claimed, strategy="shuffled", epsilon=0, keep=False).partitions == fresh.partitions


def test_explain_names_a_reason_for_every_member() -> None:
    """Each member is a ranked candidate; a member without partitions has a reason."""
    topics = [Topic("a", 2), Topic("b", 2)]
    members = [Member("x", frozenset("ab"), owned=frozenset({("a", 0)}), generation=1), Member("y", frozenset("ab"))]
    members += [Member("z", frozenset("b"))]
    told = {c.member: c for c in plan(topics, members, workers={"a": 1}).explain("a")}
    assert told["x"].kept == (0,)
    assert told["x"].gained == (1,)
    assert "workers=1" in told["y"].reason
    assert "does not subscribe" in told["z"].reason
    assert plan(topics, members).explain("gone") == []


@pytest.mark.parametrize("workers", [None, 2])
def test_groups_too_large_for_exact_counts_are_still_valid_and_even(
    workers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the limit one pass plans: everything is given, caps hold, a stable group keeps its partitions."""
    monkeypatch.setattr("assignors.planner.assign_partitions.EXACT_CELLS", 0)
    rng = random.Random(5)
    topics = [Topic(f"t{i:02d}", rng.randint(0, 9)) for i in range(30)]
    names = [t.name for t in topics]
    members = [Member(f"m{i}", frozenset([*rng.sample(names, 15), *names[i::9]])) for i in range(9)]
    made = plan(topics, members, workers=workers)
    assert sum(made.loads.values()) == sum(t.partitions for t in topics)
    assert max(made.loads.values()) <= 1.5 * sum(made.loads.values()) / 9
    assert all({t for t, _ in made.partitions[m.id]} <= m.topics for m in members)
    if workers:
        assert all(sum(any(t == n for t, _ in mine) for mine in made.partitions.values()) <= workers for n in names)
    again = plan(topics, owning(made, members), workers=workers)
    assert again.moved <= 3


def test_the_exact_plan_ends_above_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of a member and a kind: as many as the limit are planned exactly, one more topic by topic.

    docs/how-to/broker.md states this limit, and the lower one of the planner in Java.
    """
    by_topic = Mock(side_effect=topic_by_topic_plan)
    monkeypatch.setattr("assignors.planner.assign_partitions.topic_by_topic_plan", by_topic)
    topics = [Topic("a", 4), Topic("b", 4), Topic("c", 4)]  # three sets of subscribers: three kinds
    members = [Member("x", frozenset("ab")), Member("y", frozenset("bc"))]
    for limit, calls in ((6, 0), (5, 1)):
        monkeypatch.setattr("assignors.planner.assign_partitions.EXACT_CELLS", limit)
        assert sum(plan(topics, members).loads.values()) == 12
        assert by_topic.call_count == calls
    said = " ".join((Path(__file__).parents[4] / "docs/how-to/broker.md").read_text().split())
    assert f"{EXACT_CELLS:,} pairs" in said


@pytest.mark.parametrize("weights", [(1e308, 1e308, 1.0), (5e-324, 1.0, 1.0), (5e-324, 5e-324, 1e308)])
@pytest.mark.parametrize("racks", [None, [frozenset("a")] * 9])
@pytest.mark.parametrize("subscriptions", ["ttt", "tut"])
def test_weights_out_of_all_proportion_lose_no_partition(
    weights: tuple[float, ...], racks: list[frozenset[str]] | None, subscriptions: str
) -> None:
    """A weight comes from another process: sums and quotients of the largest and smallest numbers must stay numbers."""
    members = [
        Member(f"m{i}", frozenset({name, "t"} if name == "t" else {"t", "u"}), rack="ab"[i % 2], weight=weight)
        for i, (name, weight) in enumerate(zip(subscriptions, weights, strict=True))
    ]
    made = plan([Topic("t", 9, racks=racks), Topic("u", 2)], members)
    assert sum(made.loads.values()) == (11 if "u" in subscriptions else 9)


@pytest.mark.parametrize("workers", [None, 1])
def test_racks_of_one_partition_may_be_unknown(workers: int | None) -> None:
    """None means the same as an empty set, as in `leaders`: the partition is off no reader's rack."""
    given = {"leaders": [None, "a"]}
    for racks in ([None, frozenset("a")], [frozenset[str](), frozenset("a")]):
        for by in ("replicas", "leader"):
            members = [Member("m", frozenset("t"), rack="b"), Member("n", frozenset("t"), rack="a")]
            made = plan([Topic("t", 2, racks=racks, **given)], members, workers=workers, rack_by=by)  # type: ignore[arg-type] # a literal
            assert made.off_rack == 0
            assert sum(made.loads.values()) == 2


@pytest.mark.parametrize("strategy", ["hrw", "shuffled"])
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_huge_settings_mean_no_limit(strategy: Any, weight: float) -> None:
    """An epsilon or number of workers that fits no integer is no limit, not an overflow."""
    members = [Member("a", frozenset("t"), weight=weight), Member("b", frozenset("t"))]
    for workers in (2**70, {"t": 2**70}, {"*": 2**70}):
        made = plan([Topic("t", 9)], members, strategy=strategy, epsilon=1e300, workers=workers)
        assert sum(made.loads.values()) == 9


@pytest.mark.parametrize("seed", range(20))
def test_answer_topic_by_topic_is_the_same_answer(seed: int) -> None:
    """The group protocol sends it; members without a partition and topics without a subscriber are part of it."""
    scenario = random_scenario(random.Random(seed), equal=seed % 2 == 0, weights=False, racks=False, capped=False)
    made = plan(scenario.topics, scenario.members)
    flat = {m: [(t, p) for t, some in mine for p in some] for m, mine in made.by_topic().items()}
    assert flat == made.partitions
    assert all(len({t for t, _ in mine}) == len(mine) for mine in made.by_topic().values())
