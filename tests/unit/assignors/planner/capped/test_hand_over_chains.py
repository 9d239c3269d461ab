"""Chains of hand-overs: caps hold, nothing is lost, and a join moves no more than a chain needs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.planner.capped import local_search
from assignors.planner.capped.hand_over_chains import CHAIN_DISTANCES, settle_by_chains
from assignors.planner.capped.local_search import bring_into_band
from assignors.planner.capped.newcomer_bound import newcomer_moves
from assignors.planner.capped.search_state import SearchState
from assignors.planner.load_bounds import Band, fair_band


def _state(owned: list[list[int]], cap: int, low: int, high: int) -> SearchState:
    """Topics whose readers own all of their partitions."""
    pieces = np.array(owned, dtype=np.int64)
    topics, members = pieces.shape
    return SearchState(
        weights=np.ones(members),
        band=Band(np.full(members, low), np.full(members, high)),
        caps=np.full(topics, cap, dtype=np.int32),
        may=np.ones((topics, members), dtype=bool),
        owned=pieces.copy(),
        pieces=pieces,
    )


@st.composite
def groups(draw: st.DrawFn) -> SearchState:
    """Topics on some readers each, with narrow bounds and members that do not subscribe to some topics."""
    topics, members = draw(st.integers(1, 6)), draw(st.integers(2, 7))
    caps = np.array(draw(st.lists(st.integers(1, members), min_size=topics, max_size=topics)), dtype=np.int32)
    pieces = np.zeros((topics, members), dtype=np.int64)
    for topic in range(topics):
        readers = draw(st.lists(st.integers(0, members - 1), min_size=1, max_size=int(caps[topic]), unique=True))
        for member in readers:
            pieces[topic, member] = draw(st.integers(1, 4))
    may = (pieces > 0) | (np.random.default_rng(draw(st.integers(0, 99))).random(pieces.shape) < 0.8)
    band = fair_band(int(pieces.sum()), np.ones(members), draw(st.sampled_from([0.0, 0.2])))
    return SearchState(weights=np.ones(members), band=band, caps=caps, may=may, owned=pieces.copy(), pieces=pieces)


@given(groups(), st.sampled_from(CHAIN_DISTANCES))
@settings(max_examples=200, deadline=None)
def test_the_end_is_valid(state: SearchState, far: int) -> None:
    """Every partition is there, read by few enough members that subscribe, and the counts that are kept are true."""
    sizes = state.pieces.sum(axis=1)
    settle_by_chains(state, far)
    assert (state.pieces >= 0).all()
    assert (state.pieces.sum(axis=1) == sizes).all()
    assert not state.pieces[~state.may].any()
    assert (state.readers == (state.pieces > 0).sum(axis=1)).all()
    assert (state.readers <= state.caps).all()
    assert (state.load == state.pieces.sum(axis=0)).all()
    assert state.moved == np.maximum(state.owned - state.pieces, 0).sum()


def test_two_hand_overs_bring_a_partition_to_a_member_without_a_common_topic() -> None:
    """The first and the last member share no topic: single hand-overs would move whole pieces to new readers."""
    state = _state([[4, 2, 0], [0, 1, 2]], cap=2, low=3, high=3)
    settle_by_chains(state, 2)
    assert state.load.tolist() == [3, 3, 3]
    assert state.moved == 2


def test_a_member_above_its_bound_gives_by_a_chain_when_no_member_lacks() -> None:
    """After a leave the partitions without an owner can put a reader above its bound while nobody is below."""
    state = _state([[4, 2, 0], [0, 1, 2]], cap=2, low=2, high=3)
    settle_by_chains(state, 2)
    assert state.load.tolist() == [3, 3, 3]
    assert state.moved == 2


def test_a_newcomer_takes_the_piece_that_others_can_replace() -> None:
    """Each owner leaves a topic with a whole piece; only the second has a neighbour with a partition to spare."""
    #         m0 m1 m2 m3 new
    owned = [[2, 0, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0, 2, 0, 0], [2, 0, 0, 0, 0], [0, 0, 2, 3, 0], [0, 2, 0, 0, 0]]
    state = _state(owned, cap=2, low=2, high=4)
    state.caps[[0, 1, 2, 3, 5]] = 1
    settle_by_chains(state, 2)
    assert not state.outside_band().any()
    assert state.moved == 2


def test_no_pool_is_divided_where_a_join_moves_as_little_as_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick bound is one claim too low here: searching on for a plan that does not exist took most of the time."""
    state = _state([[3, 3, 0], [3, 3, 0]], cap=2, low=4, high=4)
    assert newcomer_moves(state.owned, state.owned.sum(axis=1), state.caps, state.band) == 5
    monkeypatch.setattr("assignors.planner.capped.neighbourhood_search.FewerMoves", lambda *_: pytest.fail("searched"))
    monkeypatch.setattr(local_search, "_approach_band", lambda _: pytest.fail("single steps"))
    bring_into_band(state, 4)
    assert not state.outside_band().any()
    assert state.moved == 5


def test_the_search_ends_when_more_work_finds_no_fewer_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that no plan reaches must not cost a leader all the work that a search may take."""
    rng = np.random.default_rng(5)
    owned = np.zeros((30, 20), dtype=np.int64)
    for topic in owned:
        topic[rng.choice(19, 3, replace=False)] = rng.integers(1, 5, 3)
    band = fair_band(int(owned.sum()), np.ones(20), 0.2)
    state = SearchState(
        weights=np.ones(20),
        band=band,
        caps=np.full(30, 3, dtype=np.int32),
        may=np.ones((30, 20), dtype=bool),
        owned=owned,
        pieces=owned.copy(),
    )
    monkeypatch.setattr("assignors.planner.capped.local_search.newcomer_moves", lambda *_: 0)
    bring_into_band(state, 0)
    assert not state.outside_band().any()
    assert state.moved > 0
    assert state.work < local_search.SEARCH_WORK
