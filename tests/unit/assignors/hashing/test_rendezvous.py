"""Rendezvous: the same answer everywhere, and only the keys of a changed node move."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import AssignorError, NodesError, Rendezvous, WeightError

NODES = [f"agent-{i}" for i in range(20)]
KEYS = [f"topic-{i}" for i in range(4000)]


@given(
    st.booleans(),
    st.lists(st.text(min_size=1), min_size=1, max_size=12, unique=True),
    st.text(),
    st.integers(0, 2**32 - 1),
    st.data(),
)
@settings(max_examples=80, deadline=None)
def test_ranking_is_a_permutation_that_the_order_of_nodes_does_not_change(
    hierarchical: bool,  # noqa: FBT001 - drawn by position
    nodes: list[str],
    key: str,
    seed: int,
    data: st.DataObject,
) -> None:
    """Any process that knows the same nodes gives the same answer."""
    mixed = data.draw(st.permutations(nodes))
    one, two = (Rendezvous(n, seed=seed, hierarchical=hierarchical) for n in (nodes, mixed))
    ranked = one.ranked(key)
    assert ranked == two.ranked(key)
    assert sorted(ranked) == sorted(nodes)
    assert one.owner(key) == ranked[0]
    assert all(one.top(key, k) == ranked[:k] for k in range(len(nodes) + 1))


@pytest.mark.parametrize("hierarchical", [False, True])
def test_failover_is_the_next_in_rank(*, hierarchical: bool) -> None:
    """Without its owner a key goes to the second in the ranking: k -> k+1 workers adds exactly one agent."""
    full = Rendezvous(NODES, hierarchical=hierarchical)
    for key in KEYS[:40]:
        first, second = full.top(key, 2)
        if not hierarchical:
            assert Rendezvous([n for n in NODES if n != first]).owner(key) == second
        assert first != second


def test_a_node_that_goes_moves_only_its_keys() -> None:
    """K/n keys move: those of the node that went, and no other."""
    before, after = Rendezvous(NODES), Rendezvous(NODES[:-1])
    moved = [k for k in KEYS if before.owner(k) != after.owner(k)]
    assert all(before.owner(k) == NODES[-1] for k in moved)
    assert len(moved) == pytest.approx(len(KEYS) / len(NODES), rel=0.3)


def test_a_tree_moves_a_few_times_as_many() -> None:
    """The price of the hierarchical form stays within the number of levels."""
    before, after = (Rendezvous(n, hierarchical=True) for n in (NODES, NODES[:-1]))
    assert sum(before.owner(k) != after.owner(k) for k in KEYS) < 3 * len(KEYS) / len(NODES)


@pytest.mark.parametrize("hierarchical", [False, True])
def test_keys_follow_the_weights(*, hierarchical: bool) -> None:
    """A node of weight 3 owns three times as many keys."""
    owned = Counter(map(Rendezvous("abc", [1, 2, 3], hierarchical=hierarchical).owner, KEYS))
    assert [owned[n] / len(KEYS) for n in "abc"] == pytest.approx([1 / 6, 2 / 6, 3 / 6], abs=0.03)


def test_a_raised_weight_only_attracts() -> None:
    """No key moves between nodes whose weight did not change."""
    before, after = Rendezvous("abc"), Rendezvous("abc", {"b": 2.0})
    assert all(after.owner(k) == "b" for k in KEYS if before.owner(k) != after.owner(k))


@pytest.mark.parametrize(
    ("nodes", "weights", "error", "match"),
    [
        ([], None, NodesError, "at least one"),
        (["a", "a"], None, NodesError, r"\['a'\] named more than once"),
        (["a"], [0], WeightError, "'a': weight=0"),
        (["a"], [float("inf")], WeightError, "inf"),
        (["a"], {"b": 1.0}, WeightError, r"\['b'\]"),
        (["a", "b"], [1], WeightError, "1 weights for 2 nodes"),
    ],
)
def test_bad_input_is_named(nodes: list[str], weights: object, error: type[Exception], match: str) -> None:
    """The message says which value and which node."""
    with pytest.raises(error, match=match):
        Rendezvous(nodes, weights)  # type: ignore[arg-type] # wrong on purpose


@pytest.mark.parametrize("hierarchical", [False, True])
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"nodes": None}, "nodes"),
        ({"nodes": b"ab"}, "nodes"),
        ({"nodes": [1]}, "nodes"),
        ({"seed": "x"}, "seed"),
        ({"weights": 5}, "weights"),
        ({"weights": "ab"}, "weights"),
        ({"weights": ["x", 1]}, "weight"),
        ({"weights": {1: 1.0}}, "unknown nodes"),
    ],
)
def test_arguments_of_another_type_are_named(arguments: dict[str, Any], named: str, hierarchical: bool) -> None:  # noqa: FBT001 -- a parameter
    """Instead of the name of a built-in function deep inside."""
    with pytest.raises(AssignorError, match=named):
        Rendezvous(**{"nodes": ["a", "b"], **arguments}, hierarchical=hierarchical)


@pytest.mark.parametrize("hierarchical", [False, True])
def test_a_key_or_a_number_of_another_type_is_named(hierarchical: bool) -> None:  # noqa: FBT001 -- a parameter
    """Instead of the name of a built-in function deep inside."""
    made: Any = Rendezvous(["a", "b"], hierarchical=hierarchical)
    for call in (made.owner, made.ranked, lambda key: made.top(key, 1)):
        with pytest.raises(TypeError, match="key=5"):
            call(5)
    with pytest.raises(TypeError, match=r"k=1\.5"):
        made.top("x", 1.5)
