"""The fairest loads that worker caps allow: never above those of a plan, and the end of a search that finds them."""

import itertools
import random

import numpy as np
import pytest

from assignors import Member, Plan, Topic, plan
from assignors.planner.balance import constrained_plan
from assignors.planner.capped import local_search
from assignors.planner.capped.fairest_capped_loads import are_fairest, fairest_capped_loads
from assignors.planner.capped.local_search import bring_into_band
from assignors.planner.capped.search_state import SearchState
from assignors.planner.load_bounds import fair_band


def _divisions(size: int, most: int, members: int) -> list[tuple[int, ...]]:
    return [
        way
        for way in itertools.product(range(size + 1), repeat=members)
        if sum(way) == size and sum(map(bool, way)) <= most
    ]


def _all_loads(sizes: list[int], readers: list[int], members: int) -> set[tuple[int, ...]]:
    """Return the sorted load vectors of all plans."""
    loads = {(0,) * members}
    for size, most in zip(sizes, readers, strict=True):
        ways = _divisions(size, most, members)
        loads = {tuple(sorted(map(sum, zip(load, way, strict=True)), reverse=True)) for load in loads for way in ways}
    return loads


@pytest.mark.parametrize("seed", range(100))
def test_only_the_fairest_loads_of_all_plans_are_proven(seed: int) -> None:
    """Every plan of a small group is tried: if the proof accepted other loads, a search would end too early."""
    dice = random.Random(seed)
    members = dice.randint(2, 4)
    sizes = [dice.randint(0, 6) for _ in range(dice.randint(1, 4))]
    readers = [max(1, min(size, members, dice.choice((1, 1, 2, 3)))) for size in sizes]
    least = fairest_capped_loads(np.array(sizes), np.array(readers), members)
    assert least.sum() == sum(sizes)
    found = _all_loads(sizes, readers, members)
    assert tuple(least.tolist()) <= min(found)
    proven = [load for load in found if are_fairest(np.array(load), np.array(sizes), np.array(readers))]
    assert proven in ([], [min(found)])


def test_the_proof_fails_where_whole_topics_do_not_fit() -> None:
    """Three topics of two on two members: no member can have three, and a search has to find four and two."""
    sizes, readers = np.array([2, 2, 2]), np.array([1, 1, 1])
    assert fairest_capped_loads(sizes, readers, 2).tolist() == [3, 3]
    assert not are_fairest(np.array([4, 2]), sizes, readers)


@pytest.mark.parametrize(
    ("loads", "given"),
    [
        pytest.param([3, 3, 2], ([4, 4], [4, 4], 3), id="no cap keeps members from equal loads"),
        pytest.param([5, 4, 1, 1], ([9, 2], [2, 2], 4), id="a large topic on its own readers"),
        pytest.param([5, 5, 0], ([10], [2], 3), id="fewer readers than members"),
        pytest.param([0, 0], ([0], [1], 2), id="nothing to read"),
        pytest.param([6, 4, 4], ([6, 8], [1, 3], 3), id="the rest goes to the other members"),
    ],
)
def test_large_topics_are_above_the_others(loads: list[int], given: tuple[list[int], list[int], int]) -> None:
    """Each shape by itself."""
    sizes, readers, members = given
    assert fairest_capped_loads(np.array(sizes), np.array(readers), members).tolist() == loads


def test_the_proof_does_not_hold_for_different_weights() -> None:
    """A member of twice the weight may have twice the load: sorted loads say nothing then."""
    owned = np.array([[2, 2]])
    band = fair_band(4, np.array([1.0, 2.0]), 0)
    state = SearchState(
        weights=np.array([1.0, 2.0]),
        band=band,
        caps=np.array([2], dtype=np.int32),
        may=np.ones((1, 2), dtype=bool),
        owned=owned,
        pieces=owned.copy(),
    )
    assert not state.is_fairest()


def _join(topics: list[Topic], members: int, workers: int) -> tuple[Plan, list[Member]]:
    """Plan a group, and return it with one more member."""
    names = frozenset(t.name for t in topics)
    group = [Member(f"m{i:02d}", names) for i in range(members)]
    before = plan(topics, group, workers=workers)
    owners = [Member(m.id, names, owned=frozenset(before.partitions[m.id]), generation=1) for m in group]
    return before, [*owners, Member("new", names)]


def test_fairest_loads_outside_the_band_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """One topic is too large for its readers: a leader must not spend a second on loads that no plan has."""
    sizes = [90, 5, 5, 5, 5, 5, 5, 5, 5]
    pieces = np.zeros((9, 10), dtype=np.int64)
    pieces[0, :2] = 45
    for topic in range(1, 9):
        pieces[topic, topic + 1] = 5
    state = SearchState(
        weights=np.ones(10),
        band=fair_band(sum(sizes), np.ones(10), 0.05),
        caps=np.full(9, 2, dtype=np.int32),
        may=np.ones((9, 10), dtype=bool),
        owned=pieces.copy(),
        pieces=pieces,
    )
    monkeypatch.setattr(local_search, "_come_inside", lambda *_: pytest.fail("no plan has more even loads"))
    bring_into_band(state, 0)
    assert sorted(state.load.tolist()) == [5] * 8 + [45] * 2
    assert state.moved == 0


def test_a_plan_with_the_fairest_loads_is_made_without_solving_for_the_band(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flow within the band must fail, and the fairest loads are known: neither is computed."""
    topics = [Topic("large", 400), *(Topic(f"t{i:02d}", 10 + i % 3) for i in range(20))]
    _, members = _join(topics, 40, 3)
    monkeypatch.setattr(constrained_plan, "fairest_counts", lambda *_: pytest.fail("the loads are known"))
    made = plan(topics, members, workers=3)
    sizes = np.array([t.partitions for t in topics])
    assert are_fairest(np.array(list(made.loads.values())), sizes, np.minimum(sizes, 3))


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_with_the_fairest_loads_is_stable(seed: int) -> None:
    """It is not planned a second time on its own result, so that result must be what the next rebalance keeps."""
    dice = random.Random(seed)
    topics = [Topic("large", dice.randint(150, 400)), *(Topic(f"t{i:02d}", dice.randint(1, 14)) for i in range(25))]
    _, members = _join(topics, dice.randint(12, 30), 3)
    made = plan(topics, members, workers=3)
    owners = [Member(m.id, m.topics, owned=frozenset(made.partitions[m.id]), generation=2) for m in members]
    again = plan(topics, owners, workers=3)
    assert again.moved == 0
    assert again.partitions == made.partitions
