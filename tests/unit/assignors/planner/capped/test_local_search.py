"""Hand-overs between readers: caps hold, nothing is lost, and the end is never worse than the beginning."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.planner.capped import local_search
from assignors.planner.capped.candidate_moves import CandidateMoves
from assignors.planner.capped.local_search import bring_into_band
from assignors.planner.capped.search_state import SearchState
from assignors.planner.input_arrays import I64
from assignors.planner.load_bounds import fair_band


@st.composite
def groups(draw: st.DrawFn) -> SearchState:
    """Topics with caps and claims, each placed on as many members as its cap allows."""
    topics, members = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    caps = np.array(draw(st.lists(st.integers(1, members), min_size=topics, max_size=topics)), dtype=np.int32)
    pieces, owned = np.zeros((topics, members), dtype=np.int64), np.zeros((topics, members), dtype=np.int64)
    for topic in range(topics):
        for _ in range(draw(st.integers(1, 5))):
            readers = np.flatnonzero(pieces[topic])
            who = draw(st.sampled_from(readers.tolist() if len(readers) == caps[topic] else list(range(members))))
            pieces[topic, who] += 1
            owned[topic, draw(st.integers(0, members - 1))] += 1
    weights = np.array(draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=members, max_size=members)))
    band = fair_band(int(pieces.sum()), weights, draw(st.sampled_from([0.0, 0.05, 0.5])))
    may = np.ones((topics, members), dtype=bool)
    return SearchState(weights=weights, band=band, caps=caps, may=may, owned=owned, pieces=pieces)


@given(groups(), st.sampled_from([0, 8]))
@settings(max_examples=30, deadline=None)  # 0.2 s each
def test_the_end_is_valid_and_no_worse(state: SearchState, many: int) -> None:
    """Every partition is there, no topic has more readers than its cap, and the counts that are kept along are true.

    Also where many hand-overs are found with one look, as in groups that are larger than these.
    """
    sizes, before = state.pieces.sum(axis=1), state.key()
    with mock.patch.object(local_search, "_MANY", many):
        bring_into_band(state, 0)
    assert (state.pieces >= 0).all()
    assert (state.pieces.sum(axis=1) == sizes).all()
    assert (state.readers == (state.pieces > 0).sum(axis=1)).all()
    assert (state.readers <= state.caps).all()
    assert (state.load == state.pieces.sum(axis=0)).all()
    assert state.moved == np.maximum(state.owned - state.pieces, 0).sum()
    assert state.key()[0] <= before[0]
    if not before[0]:
        assert state.moved <= before[2]


def _large(topics: int, members: int, cap: int) -> SearchState:
    """Topics of 64 partitions that all had owners anywhere, on the first members that their cap allows."""
    rng = np.random.default_rng(3)
    owned = np.stack([np.bincount(rng.integers(0, members, 64), minlength=members) for _ in range(topics)])
    pieces = np.zeros_like(owned)
    pieces[:, :cap] = 64 // cap
    pieces[:, 0] += 64 % cap
    weights = rng.choice([0.5, 1.0, 2.0, 4.0], members)
    may, caps = np.ones(owned.shape, dtype=bool), np.full(topics, cap, dtype=np.int32)
    band = fair_band(64 * topics, weights, 0.05)
    return SearchState(weights=weights, band=band, caps=caps, may=may, owned=owned, pieces=pieces)


def test_a_large_group_far_from_its_bounds_comes_into_them() -> None:
    """Hundreds of hand-overs are needed; that a step is found at a time would take a leader's whole session."""
    state = _large(100, 100, 20)
    bring_into_band(state, 0)
    assert not state.outside_band().any()


def test_many_loads_that_only_exchanges_bring_nearer_take_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One exchange a step would leave most of 40 loads above their bounds when the work is over."""
    pairs = 40
    ring = np.eye(pairs, dtype=np.int64) + np.roll(np.eye(pairs, dtype=np.int64), 1, axis=1)
    pieces = np.kron(np.diag([3, 2]), ring)  # two pieces of 3, or of 2, where 5 is the fair share
    state = SearchState(
        weights=np.ones(2 * pairs),
        band=fair_band(10 * pairs, np.ones(2 * pairs), 0.05),
        caps=np.full(2 * pairs, 2, dtype=np.int32),
        may=np.ones((2 * pairs, 2 * pairs), dtype=bool),
        owned=np.zeros_like(pieces),
        pieces=pieces,
    )
    monkeypatch.setattr(local_search, "BALANCE_WORK", 30_000)
    monkeypatch.setattr(local_search, "SEARCH_WORK", 0)
    bring_into_band(state, 0)
    assert not state.outside_band().any()
    assert ((state.pieces > 0).sum(axis=1) == 2).all()
    assert (state.pieces.sum(axis=1) == pieces.sum(axis=1)).all()


@pytest.mark.parametrize("cap", [1, 3])
def test_the_work_is_bounded_where_bounds_cannot_be_reached(cap: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader's heartbeats wait: each phase ends with the look that passes its limit."""
    state, work = _large(60, 60, cap), list[int]()

    def priced(state: SearchState, steps: CandidateMoves) -> tuple[CandidateMoves, I64]:
        work.append(steps.topic.size)
        return known(state, steps)

    known = local_search._priced
    monkeypatch.setattr(local_search, "_priced", priced)
    monkeypatch.setattr(local_search, "BALANCE_WORK", 100_000)
    monkeypatch.setattr(local_search, "SEARCH_WORK", 50_000)
    bring_into_band(state, 0)
    assert sum(work) <= 2 * 100_000 + 50_000 + 40 * max(work)


def test_a_join_beyond_the_readers_of_all_caps_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 3 topics of 2 workers a seventh member stays idle: a leader must not spend a second on finding that."""
    owned = np.kron(np.eye(3, 4, dtype=np.int64), np.array([[5, 5]]))[:, :7]
    band = fair_band(30, np.ones(7), 0.05)
    caps = np.full(3, 2, dtype=np.int32)
    state = SearchState(
        weights=np.ones(7), band=band, caps=caps, may=np.ones((3, 7), dtype=bool), owned=owned, pieces=owned.copy()
    )
    monkeypatch.setattr(local_search, "search_neighbourhoods", lambda *_: pytest.fail("the loads are the fairest"))
    bring_into_band(state, 0)
    assert sorted(state.load.tolist()) == [0, 5, 5, 5, 5, 5, 5]
    assert state.moved == 0


def test_a_newcomer_gets_small_topics_from_those_above_their_bound() -> None:
    """The partitions above the upper bound are those that the new member needs: no unnecessary claim moves."""
    owned = np.array([[2, 0, 0], [2, 0, 0], [1, 0, 0], [0, 2, 0], [0, 2, 0], [0, 1, 0]])
    band = fair_band(10, np.ones(3), 0.2)
    caps = np.ones(6, dtype=np.int32)
    state = SearchState(
        weights=np.ones(3), band=band, caps=caps, may=np.ones((6, 3), dtype=bool), owned=owned, pieces=owned.copy()
    )
    bring_into_band(state, 0)
    assert sorted(state.load.tolist()) == [3, 3, 4]
    assert state.moved == 3


def test_a_step_can_be_taken_back() -> None:
    """Trying is doing and undoing: all counts are as before."""
    owned = np.array([[3, 0], [0, 2]])
    state = SearchState(
        weights=np.ones(2),
        band=fair_band(5, np.ones(2), 0),
        caps=np.array([1, 2], dtype=np.int32),
        may=np.ones((2, 2), dtype=bool),
        owned=owned,
        pieces=owned.copy(),
    )
    steps = [[(0, 0, 1, 3), (1, 1, 0, 2)], [(1, 0, 1, 1)]]
    for step in steps:
        state.apply(step)
    assert (state.moved, state.load.tolist()) == (4, [1, 4])
    state.undo(steps)
    assert (state.moved, state.load.tolist(), state.readers.tolist()) == (0, [3, 2], [1, 1])
    assert (state.pieces == owned).all()
