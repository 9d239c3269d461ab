"""The loops of a plan: compiled and interpreted give the same, and the same as the definition."""

import gc
import shutil
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import Member, Topic, plan
from assignors.errors import GroupError
from assignors.hashing.murmur3_hash import mix64
from assignors.planner import (
    input_arrays,
    member_ranking,
    place_unowned,
    plan_loops,
    plan_loops_interpreted,
    plan_result,
)

try:
    from assignors.planner import plan_loops_compiled
except ImportError:  # built without a C compiler
    plan_loops_compiled = None  # type: ignore[assignment]

compiled = pytest.mark.skipif(plan_loops_compiled is None, reason="built without a C compiler")


@pytest.fixture(
    params=[
        pytest.param(plan_loops_interpreted, id="interpreted"),
        pytest.param(plan_loops_compiled, id="compiled", marks=compiled),
    ]
)
def loops(request: pytest.FixtureRequest) -> ModuleType:
    """Each of the two modules."""
    found: ModuleType = request.param
    return found


class Choice:
    """Arguments of `give_best`, drawn with many equal scores, or with none."""

    def __init__(self, draw: Any) -> None:
        """Draw from hypothesis."""
        members = draw(st.one_of(st.integers(1, 20), st.integers(21, 400)))
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        kinds = draw(st.sampled_from([1, 2, 7, 100, 2**63]))
        self.score = rng.integers(0, kinds, members, dtype=np.uint64) * np.uint64(draw(st.sampled_from([1, 2])))
        if draw(st.booleans()):
            self.score.sort()
        self.load = rng.integers(0, 5, members)
        self.limit = rng.integers(0, 6, members) if draw(st.booleans()) else np.full(members, draw(st.integers(0, 6)))
        self.low = rng.integers(0, 6, members) if draw(st.booleans()) else None
        self.count = draw(st.integers(1, members))
        self.spare = draw(st.integers(0, members))

    def given_by(self, module: ModuleType) -> tuple[list[int], int, list[int]] | None:
        """Return the members, how many were below their lower bounds, and the loads afterwards."""
        load = self.load.copy()
        given_members = module.give_best(self.score, load, self.limit, self.low, self.count, self.spare)
        if given_members is None:
            assert (load == self.load).all()
            return None
        return given_members[0].tolist(), given_members[1], load.tolist()

    def by_definition(self) -> tuple[list[int], int, list[int]] | None:
        """Sort all members below their limits."""
        below = [m for m in range(len(self.load)) if self.load[m] < self.limit[m]]
        chosen = sorted(below, key=lambda m: (-int(self.score[m]), m))[: self.count]
        needed = sum(self.low is None or bool(self.load[m] < self.low[m]) for m in chosen)
        if len(chosen) < self.count or (self.low is not None and self.count - needed > self.spare):
            return None
        load = self.load.copy()
        load[chosen] += 1
        return chosen, needed, load.tolist()


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_the_best_members_below_their_limits_are_chosen(data: st.DataObject) -> None:
    """Equal scores, scores of 0, limits that none, some or all are below, and counts of 1 to all."""
    choice = Choice(data.draw)
    wanted = choice.by_definition()
    assert choice.given_by(plan_loops_interpreted) == wanted
    if plan_loops_compiled is not None:
        assert choice.given_by(plan_loops_compiled) == wanted


def test_columns_of_tables_are_taken(loops: ModuleType) -> None:
    """Bounds may be a column of a table, whose numbers do not lie side by side."""
    table = np.array([[1, 9], [0, 9], [1, 9]])
    load = np.zeros((3, 2), dtype=np.int64)[:, 0]
    found = loops.give_best(np.array([5, 6, 7], np.uint64), load, table[:, 0], table[:, 0], 2, 0)
    assert (found[0].tolist(), found[1], load.tolist()) == ([2, 0], 2, [1, 0, 1])


numbers: st.SearchStrategy[object] = st.one_of(
    st.integers(-1, 4), st.sampled_from([2**31, 2**63, -(2**70), True, np.int64(1), None, float("nan"), 1.5, "1"])
)
claims: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.sampled_from(["a", "b", "c", "gone", ""]), st.integers(-1, 4)),
    st.tuples(st.sampled_from(["a", "b", 7, None]), numbers),
    st.sampled_from([("a",), ("b", 1, "more"), (), "a", "b1", 5]),
)
few_of_all = st.sampled_from([claims, claims.filter(lambda one: isinstance(one, tuple) and len(one) > 1)])
plain = st.tuples(st.sampled_from(["a", "b", "c", "gone"]), st.integers(-1, 4))
some = st.one_of(st.just(plain), few_of_all).flatmap(lambda of: st.frozensets(of, max_size=4))
owned_sets = st.lists(st.one_of(some, some.map(list), some.map(set)), max_size=5)


@compiled
@given(owned_sets)
@settings(max_examples=400, deadline=None)
def test_claims_are_found_alike(owned: list[Any]) -> None:
    """Of plain pairs, and of everything else that a program may call a claim."""
    known, first = {"a": 0, "b": 1, "c": 2}, np.array([0, 3, 3, 7])

    def found(module: ModuleType) -> object:
        try:
            at, member = module.claimed_places(known, owned, first)
        except (GroupError, TypeError) as error:
            return repr(error)
        return at.tolist(), member.tolist(), at.dtype, member.dtype

    assert found(plan_loops_compiled) == found(plan_loops_interpreted)


@given(st.lists(st.sampled_from([0, 1, 2, 3, 300]), max_size=6), st.integers(0, 9), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_each_member_gets_its_pairs_in_order(sizes: list[int], members: int, rng: Any) -> None:
    """Members without partitions, partitions without a member, topics without partitions, numbers above 256."""
    names, first = [f"t{i}" for i in range(len(sizes))], np.cumsum([0, *sizes])
    owner = np.array([rng.randrange(-1, members) for _ in range(sum(sizes))], np.int32)
    pairs = [(name, number) for name, size in zip(names, sizes, strict=True) for number in range(size)]
    wanted = [[pair for pair, mine in zip(pairs, owner, strict=True) if mine == m] for m in range(members)]
    modules: Iterable[ModuleType | None] = (plan_loops_interpreted, plan_loops_compiled)
    for module in filter(None, modules):
        found = module.pairs_of_members(names, first, owner, members)
        assert found == wanted
        assert {type(one) for mine in found for pair in mine for one in (pair, *pair)} <= {tuple, str, int}


@compiled
def test_the_garbage_collector_has_no_pairs_to_look_at() -> None:
    """10,000 pairs start it 14 times. A name of a subclass may be in a cycle, so its pairs stay with the collector."""

    class Name(str):
        __slots__ = ("of",)

    found = plan_loops_compiled.pairs_of_members(["t", Name("u")], np.array([0, 1, 2]), np.zeros(2, np.int32), 1)
    assert [gc.is_tracked(pair) for pair in found[0]] == [False, True]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_pairs_are_mixed_as_the_hash_says(loops: ModuleType, count: int) -> None:
    """Other languages compute the same ranks."""
    nodes, keys = np.array([0, 1, 2**63, 2**64 - 1], np.uint64), np.arange(count, dtype=np.uint64) * np.uint64(3**40)
    assert loops.mix_pairs(nodes, keys).tolist() == [[mix64(int(n ^ k)) for n in nodes] for k in keys]
    assert loops.mix_pairs(nodes, keys).shape == (count, 4)


def use(module: ModuleType, patch: pytest.MonkeyPatch) -> None:
    """Let plans run with the loops of this module."""
    patch.setattr(place_unowned, "give_best", module.give_best)
    patch.setattr(input_arrays, "claimed_places", module.claimed_places)
    patch.setattr(member_ranking, "mix_pairs", module.mix_pairs)
    patch.setattr(plan_result, "pairs_of_members", module.pairs_of_members)


@compiled
@pytest.mark.parametrize("examples", [10, pytest.param(100, marks=pytest.mark.long)])
def test_plans_are_the_same(examples: int) -> None:
    """Whole plans and the joins after them, for all that changes how partitions are placed."""
    settings(max_examples=examples, deadline=None)(given(st.data())(_compare_plans))()


def _compare_plans(data: st.DataObject) -> None:
    draw = data.draw
    sizes = draw(st.lists(st.sampled_from([1, 2, 5, 30, 80]), min_size=1, max_size=12))
    topics = [Topic(f"t{i}", size) for i, size in enumerate(sizes)]
    if draw(st.booleans()):
        topics = [
            Topic(t.name, t.partitions, racks=[frozenset("abc"[p % 3]) for p in range(t.partitions)]) for t in topics
        ]
    wanted = frozenset(t.name for t in topics)
    weights = draw(st.sampled_from([[1.0], [1.0, 2.0], [0.3, 1.0, 7.0]]))
    racks: list[str | None] = draw(st.sampled_from([[None], ["a", "b", "c"]]))
    given_members = [
        Member(f"h{i // 3}-{i}", wanted, weight=weights[i % len(weights)], rack=racks[i % len(racks)])
        for i in range(draw(st.sampled_from([1, 2, 9, 40, 100])))
    ]
    chosen: dict[str, Any] = {
        "strategy": draw(st.sampled_from(["hrw", "shuffled"])),
        "epsilon": draw(st.sampled_from([0, 0.05, 0.5])),
        "workers": draw(st.sampled_from([None, None, None, 3])),
        "node": draw(st.sampled_from([None, "(.*)"])),
    }

    def both(module: ModuleType) -> list[object]:
        with pytest.MonkeyPatch.context() as patch:
            use(module, patch)
            made = plan(topics, given_members[1:] or given_members, **chosen).partitions
            joined = [
                Member(m.id, wanted, weight=m.weight, rack=m.rack, owned=frozenset(made.get(m.id, ())), generation=1)
                for m in given_members
            ]
            again = plan(topics, joined, **chosen)
            return [made, again.partitions, again.moved, again.by_topic()]

    assert both(plan_loops_compiled) == both(plan_loops_interpreted)


def test_the_loops_are_compiled_where_there_is_a_compiler() -> None:
    """An install that could have compiled them and did not takes more time for each plan, and reports nothing."""
    compiler = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0])
    if compiler is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("no C compiler, or no headers of Python's")
    assert plan_loops.COMPILED
