"""The lower bound for a member that needs many partitions: never above the optimum, and it sees whole pieces."""

import random

import numpy as np
import pytest

from assignors import Member, Topic, plan
from assignors.planner.capped.newcomer_bound import newcomer_moves
from assignors.planner.input_arrays import read_problem
from assignors.planner.load_bounds import Band, fair_band


def _bound(owned: list[list[int]], cap: int, low: int, free: int = 0) -> int:
    claims = np.array(owned)
    sizes, members = claims.sum(axis=1) + free, claims.shape[1]
    caps = np.full(len(sizes), cap, dtype=np.int32)
    return newcomer_moves(claims, sizes, caps, Band(np.full(members, low), np.full(members, 99)))


@pytest.mark.parametrize(
    ("least", "given"),
    [
        pytest.param(0, ([[3, 0], [0, 3]], 1, 3), id="no member needs any"),
        pytest.param(2, ([[2, 2, 0], [2, 2, 0]], 3, 2), id="its cap allows one more reader"),
        pytest.param(5, ([[3, 3, 0], [3, 3, 0]], 2, 4), id="pieces of three, where each can give two"),
        pytest.param(5, ([[3, 2, 0], [3, 2, 0], [2, 3, 0]], 2, 5), id="pieces that their owners can give"),
        pytest.param(1, ([[2, 2, 0], [2, 2, 0]], 3, 3, 1), id="partitions without an owner"),
        pytest.param(2, ([[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]] * 3, 6, 2), id="more choices than are tried"),
    ],
)
def test_an_owner_gives_whole_pieces(least: int, given: tuple[list[list[int]], int, int]) -> None:
    """Each reason by itself."""
    assert _bound(*given) == least


def _group(dice: random.Random) -> tuple[list[Topic], list[Member], int, float]:
    """Draw a small group with one member that owns little, which is planned exactly."""
    count, number, cap = dice.randint(2, 4), dice.randint(2, 4), dice.randint(1, 3)
    topics = [Topic(f"t{i}", dice.randint(1, 5)) for i in range(number)]
    names = frozenset(t.name for t in topics)
    claims: list[set[tuple[str, int]]] = [set() for _ in range(count + 1)]
    for topic in topics:
        readers = dice.sample(range(count), min(count, cap))
        for partition in range(topic.partitions):
            if dice.random() < 0.95:
                claims[dice.choice(readers)].add((topic.name, partition))
    members = [Member(f"m{i}", names, owned=frozenset(mine), generation=1) for i, mine in enumerate(claims)]
    return topics, members, cap, dice.choice([0, 0.05, 0.2])


def test_no_plan_moves_fewer() -> None:
    """Small groups are planned exactly: the bound is never above their optimum, and sometimes reaches it."""
    met = tight = 0
    for seed in range(120):
        topics, members, cap, epsilon = _group(random.Random(seed))
        made = plan(topics, members, workers=cap, epsilon=epsilon)
        problem = read_problem(topics, members, 0)
        band, sizes = fair_band(problem.partitions, problem.weights, epsilon), np.diff(problem.first)
        loads = np.array([made.loads[m.id] for m in problem.members])
        if (loads < band.low).any() or (loads > band.high).any():
            continue
        caps = np.full(len(sizes), cap, dtype=np.int32)
        bound = newcomer_moves(problem.owned, sizes, caps, band)
        assert bound <= made.moved, seed
        met += 1
        tight += 0 < bound == made.moved
    assert met > 40
    assert tight > 0


def test_a_plan_tells_the_higher_bound() -> None:
    """A join where pieces are larger than what their owners can give; the quick bound is what the member needs, 14."""
    names = frozenset(f"t{i:02d}" for i in range(40))
    topics = [Topic(name, 8) for name in sorted(names)]
    members = [Member(f"m{i:02d}", names) for i in range(20)]
    before = plan(topics, members, workers=2).partitions
    owners = [Member(m.id, names, owned=frozenset(before[m.id]), generation=1) for m in members]
    made = plan(topics, [*owners, Member("new", names)], workers=2)
    assert 15 < made.lower_bound <= made.moved
