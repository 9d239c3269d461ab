"""The comparison of strategies: its counts, and a peer's failure as a result."""

import pytest

from assignors import Member, Topic, plan
from assignors.comparison import STRATEGIES, Outcome, Settings, compare, stock_plan

NAMES = frozenset(f"t{i:02d}" for i in range(12))
TOPICS = [Topic(name, 1, racks=[frozenset({"a"})]) for name in sorted(NAMES)]
FRESH = [Member(f"m{i}", NAMES, rack="ab"[i % 2]) for i in range(4)]


def _under(strategy: str) -> list[Member]:
    """The members as they own when the group uses a stock strategy."""
    given = stock_plan(strategy, TOPICS, FRESH)
    return [Member(m.id, m.topics, rack=m.rack, owned=given[m.id], generation=1) for m in FRESH]


def _by_name(outcomes: list[Outcome]) -> dict[str, Outcome]:
    return {one.strategy: one for one in outcomes}


def test_range_piles_single_partitions_on_one_member_and_the_own_strategies_do_not() -> None:
    """Loads, idle members and topics per member are those of the strategies themselves."""
    found = _by_name(compare(TOPICS, _under("range")))
    assert (found["range"].most, found["range"].idle, found["range"].connections) == (12, 3, 12)
    assert found["now"].most == 12
    for name in ("hrw", "shuffled", "sticky", "round robin"):
        assert (found[name].most, found[name].idle) == (3, 0)


def test_a_strategy_that_is_in_use_moves_nothing() -> None:
    """The group's present strategy moves nothing, and every strategy has an outcome."""
    found = _by_name(compare(TOPICS, _under("range")))
    assert set(found) == {"now", *STRATEGIES}
    assert found["range"].moved == 0
    assert found["hrw"].moved == 9


def test_when_a_member_leaves_only_what_it_held_moves_under_sticky_strategies() -> None:
    """The leaving member's partitions are the fewest that can move; hrw and shuffled move just them."""
    found = _by_name(compare(TOPICS, _under("round robin"), leaving="m1"))
    for name in ("hrw", "shuffled"):
        assert found[name].moved_on_leave == found[name].leaves == 3
    assert (found["round robin"].moved_on_leave or 0) > 3


def test_partitions_of_another_rack_are_counted_with_their_bytes() -> None:
    """All replicas are in rack a: reads of m1 and m3 (rack b) are off-rack; hrw gives rack a as much as it may."""
    sizes = {(name, 0): 10 for name in NAMES}
    found = _by_name(compare(TOPICS, _under("round robin"), sizes=sizes))
    assert (found["now"].off_rack, found["now"].off_rack_bytes) == (6, 60)
    assert found["hrw"].off_rack == plan(TOPICS, _under("round robin")).off_rack


def test_members_without_a_rack_are_never_off_rack() -> None:
    """Unknown is unknown, not a mismatch; and unknown sizes are no zero bytes."""
    found = compare(TOPICS, [Member(m.id, m.topics) for m in FRESH])
    assert {one.off_rack for one in found} == {0}
    assert {one.off_rack_bytes for one in found if not one.failure} == {None}


def test_a_peer_that_raises_is_an_outcome() -> None:
    """kafka-python's round robin fails where subscriptions differ: the others are compared all the same."""
    members = [Member("m0", NAMES), Member("m1", frozenset({"t00"}))]
    found = _by_name(compare(TOPICS, members, settings=Settings(epsilon=0)))
    assert found["round robin"].failure.startswith("KeyError")
    assert not found["hrw"].failure


def test_the_last_member_leaves_without_a_plan_after_it() -> None:
    """Without remaining members no partition can move."""
    assert _by_name(compare(TOPICS, FRESH[:1]))["hrw"].moved_on_leave is None


@pytest.mark.parametrize("strategy", ["range", "round robin", "sticky"])
def test_stock_plans_give_every_partition_once(strategy: str) -> None:
    """Equal subscriptions: the peers themselves are valid."""
    given = stock_plan(strategy, TOPICS, FRESH)
    assert sorted(pair for pairs in given.values() for pair in pairs) == sorted((name, 0) for name in NAMES)
