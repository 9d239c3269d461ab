"""A hand-over to one of several takers that are alike stands for the others."""

import numpy as np
import pytest

from assignors.planner.capped import candidate_moves, local_search
from assignors.planner.capped.search_state import SearchState
from assignors.planner.input_arrays import I64, Bools
from assignors.planner.load_bounds import fair_band


def _group(seed: int) -> SearchState:
    """Members of few different loads and weights, which do not all subscribe to all topics, with claims anywhere."""
    rng = np.random.default_rng(seed)
    topics, members = int(rng.integers(2, 8)), int(rng.integers(2, 30))
    may = rng.random((topics, members)) < rng.choice([0.7, 1.0])
    may[:, 0] = True
    pieces = np.where(may & (rng.random(may.shape) < 0.3), rng.integers(1, 4, may.shape), 0)
    owned = np.where(may & (rng.random(may.shape) < 0.2), rng.integers(1, 4, may.shape), 0)
    weights = rng.choice([1.0, 2.0], members) if seed % 2 else np.ones(members)
    band = fair_band(int(pieces.sum()), weights, 0.05)
    caps = np.maximum((pieces > 0).sum(axis=1) + rng.integers(0, 2, topics), 1).astype(np.int32)
    return SearchState(weights=weights, band=band, caps=caps, may=may, owned=owned, pieces=pieces)


def _every_taker(_: SearchState, may: Bools, known: Bools, takers: I64) -> I64:
    assert may.shape == known.shape == (len(may), len(takers))
    return may.astype(np.int64)


@pytest.mark.parametrize("seed", range(60))
def test_the_best_hand_over_is_that_of_all_takers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step of the search, its price and the work that is counted are those of one row for each taker."""
    state = _group(seed)
    full, empty = candidate_moves.extremes(state)
    found = []
    for every in (False, True):
        if every:
            monkeypatch.setattr(candidate_moves, "_first_of_alike", _every_taker)
        state.work = 0
        gifts = candidate_moves.gifts(state, full, empty)
        none = gifts.first(0)
        found.append((local_search._nearest(state, gifts), local_search._lowest(state, gifts, none), state.work))
        assert (gifts.alike > 0).all()
    assert found[0] == found[1]


def _idle(weights: np.ndarray) -> SearchState:
    """The first of 51 members has all 60 partitions of the only topic, and member 7 claims one of them."""
    pieces, owned = np.zeros((1, 51), dtype=np.int64), np.zeros((1, 51), dtype=np.int64)
    pieces[0, 0], owned[0, 7] = 60, 1
    band, caps = fair_band(60, weights, 0.05), np.array([40], dtype=np.int32)
    may = np.ones((1, 51), dtype=bool)
    return SearchState(weights=weights, band=band, caps=caps, may=may, owned=owned, pieces=pieces)


NONE: I64 = np.array([], dtype=np.int64)


def test_takers_that_are_alike_share_a_row() -> None:
    """Of 50 idle members the first one stands for all; the one that claims the topic stands for itself."""
    gifts = candidate_moves.gifts(_idle(np.ones(51)), np.array([0]), NONE)
    assert gifts.taker.tolist() == [1, 7]
    assert gifts.alike.tolist() == [49, 1]


def test_the_emptiest_share_a_row_unless_their_weights_differ_or_one_has_a_claim() -> None:
    """These have another price, so the search must see each of them."""
    weights = np.ones(51)
    weights[9] = 2.0
    gifts = candidate_moves.gifts(_idle(weights), NONE, np.arange(1, 51))
    assert gifts.taker.tolist() == [1, 7, 9]
    assert gifts.alike.tolist() == [48, 1, 1]
