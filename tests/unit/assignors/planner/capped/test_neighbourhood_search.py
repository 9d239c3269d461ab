"""Pools divided among their members: the best of all divisions where a pool has every member, never worse elsewhere."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from assignors.planner.capped.neighbourhood_search import search_neighbourhoods
from assignors.planner.capped.search_state import SearchState
from assignors.planner.input_arrays import I64
from assignors.planner.load_bounds import fair_band

ENDLESS = 1 << 60


def made(pieces: I64, owned: I64, cap: int, epsilon: float, off: I64 | None = None) -> SearchState:
    """SearchState of equal members; with `off`, the partitions of topic t are all of rack set t."""
    members = pieces.shape[1]
    racks = {} if off is None else {"sets": np.diag(pieces.sum(axis=1)), "off": off.astype(bool)}
    return SearchState(
        weights=np.ones(members),
        band=fair_band(int(pieces.sum()), np.ones(members), epsilon),
        caps=np.full(len(pieces), cap, dtype=np.int32),
        may=np.ones(pieces.shape, dtype=bool),
        owned=owned,
        pieces=pieces,
        **racks,
    )


@st.composite
def groups(draw: st.DrawFn, members: int, topics: int) -> tuple[I64, I64, int, float, I64]:
    """Pieces that caps allow, claims, the cap, epsilon and which members are off which racks."""
    cap = draw(st.integers(1, 2))
    pieces, owned = np.zeros((2, topics, members), dtype=np.int64)
    for topic in range(topics):
        readers = draw(st.lists(st.integers(0, members - 1), min_size=1, max_size=cap))
        for reader in readers:
            pieces[topic, reader] += draw(st.integers(1, 2))
        for _ in range(int(pieces[topic].sum())):
            owned[topic, draw(st.integers(0, members - 1))] += 1
    off = np.array(draw(st.lists(st.booleans(), min_size=topics * members, max_size=topics * members)))
    return pieces, owned, cap, draw(st.sampled_from([0.0, 0.3])), off.reshape(topics, members)


def cost(pieces: I64, state: SearchState) -> tuple[int, int, int]:
    """Partitions outside the bounds, off rack, moved."""
    load = pieces.sum(axis=0)
    outside = np.maximum(load - state.band.high, 0) + np.maximum(state.band.low - load, 0)
    away = int(pieces[state.off].sum()) if state.off.size else 0
    return int(outside.sum()), away, int(np.maximum(state.owned - pieces, 0).sum())


def ways(size: int, members: int, cap: int) -> Iterator[tuple[int, ...]]:
    """Every way to divide a topic that its cap allows."""
    for way in itertools.product(range(size + 1), repeat=members):
        if sum(way) == size and np.count_nonzero(way) <= cap:
            yield way


@given(groups(members=3, topics=3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_pool_of_all_members_finds_the_best(group: tuple[I64, I64, int, float, I64], racks: bool) -> None:  # noqa: FBT001 - hypothesis
    """Bounds before racks before moves, against every division."""
    pieces, owned, cap, epsilon, off = group
    state = made(pieces, owned, cap, epsilon, off if racks else None)
    assume(state.moved or state.outside_band().any())
    every = itertools.product(*(list(ways(int(n), 3, cap)) for n in pieces.sum(axis=1)))
    best = min(cost(np.array(way), state) for way in every)
    search_neighbourhoods(state, 0, ENDLESS)
    assert cost(state.pieces, state) == best


@given(groups(members=7, topics=6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_end_is_valid_and_never_worse(group: tuple[I64, I64, int, float, I64], racks: bool) -> None:  # noqa: FBT001 - hypothesis
    """Every partition is there, no topic has more readers than its cap, and no goal is lost for a later one."""
    pieces, owned, cap, epsilon, off = group
    state = made(pieces.copy(), owned, cap, epsilon, off if racks else None)
    start = cost(pieces, state)
    search_neighbourhoods(state, 0, 100_000)
    assert cost(state.pieces, state) <= start
    assert state.pieces.min() >= 0
    assert (state.pieces.sum(axis=1) == pieces.sum(axis=1)).all()
    assert (state.readers == (state.pieces > 0).sum(axis=1)).all()
    assert state.readers.max() <= cap
    assert (state.load == state.pieces.sum(axis=0)).all()
    assert state.moved == np.maximum(owned - state.pieces, 0).sum()


def test_three_pieces_that_only_fit_together_return() -> None:
    """Each by itself would leave the bounds, and no other hand-over repairs that: as one pool they all return."""
    owned = np.array([[3, 0, 0], [0, 3, 0], [0, 0, 3], [2, 0, 0], [0, 2, 0], [0, 0, 2]])
    state = made(np.roll(owned, 1, axis=1), owned, 1, 0)
    search_neighbourhoods(state, 0, ENDLESS)
    assert (state.pieces == owned).all()


def test_five_pieces_that_only_fit_together_return() -> None:
    """A ring of five: any four of them alone would leave the bounds."""
    owned = np.diag([3] * 5)
    state = made(np.roll(owned, 1, axis=1), owned, 1, 0)
    search_neighbourhoods(state, 0, ENDLESS)
    assert (state.pieces == owned).all()


def test_a_pool_with_too_much_work_gets_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where dividing all members at once takes too much work, two of them still return their pieces."""
    monkeypatch.setattr("assignors.planner.capped.reachable_loads.MOST_WORK", 40)
    owned = np.array([[2, 0, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0, 2, 0, 0], [0, 0, 0, 2, 0], [0, 0, 0, 0, 2]])
    state = made(owned[[1, 0, 2, 3, 4]], owned, 1, 0)
    search_neighbourhoods(state, 0, 100_000)
    assert (state.pieces == owned).all()


@pytest.mark.parametrize("size", [1_000, 1_000_000])
def test_topics_of_many_partitions_are_divided_nearby_or_not_at_all(size: int) -> None:
    """Neither every division of a large topic nor every load is tried: the work is bounded, and so is memory."""
    owned = np.array([[size, 0, 0], [0, size, 0], [0, 0, size]])
    pieces = np.array([[size - 1, 1, 0], [0, size - 1, 1], [1, 0, size - 1]])
    state = made(pieces, owned, 2, 0)
    search_neighbourhoods(state, 0, 1_000_000)
    assert state.moved == (0 if size == 1_000 else 3)
    assert (state.pieces.sum(axis=1) == size).all()
