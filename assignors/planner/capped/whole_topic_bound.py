"""A lower bound of the claims that move if each topic has one worker: near the optimum, for some hundred milliseconds.

Where a topic cannot be divided, a member that has to give or take a few partitions often must exchange topics. What
that costs depends on the sizes of all topics, which the quick conditions of `movement_lower_bound` do not see.

Every plan gives each topic to one member, so for each size the members together keep and receive as many topics as
there are. This bound relaxes that condition to a price for each size (Lagrangian relaxation): each member then chooses
for itself which of its topics it keeps and which sizes it receives, within its bounds, by dynamic programming over its
load. At any prices, no plan keeps more claims than the members' best choices and the price of all topics together. The
subgradient method searches for prices that make this bound low.

Source: Held and Karp 1971; the steps are those of Polyak 1969.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from assignors.hashing.murmur3_hash import F64
from assignors.planner.input_arrays import I64, Bools
from assignors.planner.load_bounds import Band

_ROUNDS: Final = 400
_FEWEST_ROUNDS: Final = 10
_PATIENCE: Final = 10  # rounds without a better bound, after which steps get half as long
_STEP: Final = 1.5
_WORK: Final = 100_000_000
"""Maximum number of cells of the members' tables in all rounds, about a second."""
_NEVER: Final = -1e15
_NOISE: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices:
    """What the members can keep.

    Attributes:
        sizes: the distinct sizes of topics, ascending, shape (S,).
        topics: topics of each size, shape (S,).
        owned: the claims on the i-th topic of each member, 0 where it has fewer topics, shape (I, M).
        number: the number of that topic's size, shape (I, M).
        low: smallest load of each member, shape (M,).
        high: largest load of each member, shape (M,).
    """

    sizes: I64
    topics: I64
    owned: I64
    number: I64
    low: I64
    high: I64


def whole_topic_moves(owned: I64, sizes: I64, band: Band, least: int, moved: int) -> int:
    """Bound the claims that move in any plan within the band that gives every topic to one member.

    Args:
        owned: valid claims, shape (T, M).
        sizes: partitions of each topic, shape (T,).
        band: bounds of the loads.
        least: a lower bound that is known.
        moved: claims that a known plan of this kind moves.

    Returns:
        A lower bound that is at least `least`.
    """
    choices = _choices(owned, sizes, band)
    cells = choices.owned.size * (int(band.high.max()) + 1)
    prices = np.zeros(len(choices.sizes))
    all_claims, step, idle = int(owned.sum()), _STEP, 0
    most_kept = math.inf
    rounds = min(_ROUNDS, _WORK // max(1, cells))
    for _ in range(rounds if rounds >= _FEWEST_ROUNDS else 0):
        kept, taken = _best_choices(choices, prices)
        kept += float(prices @ choices.topics)
        idle = 0 if kept < most_kept - _NOISE else idle + 1
        most_kept = min(most_kept, kept)
        excess = taken - choices.topics
        if all_claims - most_kept > moved - 1 + _NOISE or not excess.any():
            break
        if idle == _PATIENCE:
            step, idle = step / 2, 0
        prices = prices + step * max(kept - (all_claims - moved), _NOISE) * excess / float(excess @ excess)
    return max(least, math.ceil(all_claims - most_kept - _NOISE)) if most_kept < math.inf else least


def _choices(owned: I64, sizes: I64, band: Band) -> _Choices:
    distinct, number = np.unique(sizes, return_inverse=True)
    members, topics = np.nonzero(owned.T)
    counts = np.bincount(members, minlength=owned.shape[1])
    nth = np.arange(len(members)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = int(counts.max(initial=0)), owned.shape[1]
    claims, numbers = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    claims[nth, members], numbers[nth, members] = owned[topics, members], number[topics]
    return _Choices(
        sizes=distinct,
        topics=np.bincount(number, minlength=len(distinct)),
        owned=claims,
        number=numbers,
        low=band.low,
        high=band.high,
    )


def _best_choices(choices: _Choices, prices: F64) -> tuple[float, I64]:
    """Return the most claims less prices that the members choose, and how many topics of each size they take in all."""
    top = int(choices.high.max())
    received, parts = _received(choices.sizes, prices, top)
    worth, keeps = _kept(choices, prices, top)
    # The best load with each kept load: what is received brings it within the bounds.
    best, size = _within(received, choices.low, choices.high)
    total = worth + best
    at = total.argmax(axis=1)
    members = np.arange(len(at))
    taken = parts[size[members, at]].sum(axis=0)
    for i in range(len(keeps) - 1, -1, -1):
        keep = keeps[i][members, at]
        numbers = choices.number[i][keep]
        np.add.at(taken, numbers, 1)
        at[keep] -= choices.sizes[numbers]
    return float(total.max(axis=1).sum()), taken


def _received(sizes: I64, prices: F64, top: int) -> tuple[F64, I64]:
    """Return the lowest price of received topics for each load, as a negative number, and their number by size."""
    worth = np.full(top + 1, _NEVER)
    parts = np.zeros((top + 1, len(sizes)), dtype=np.int64)
    worth[0] = 0
    for load in range(1, top + 1):
        fits = np.searchsorted(sizes, load, side="right")
        if fits:
            through = worth[load - sizes[:fits]] - prices[:fits]
            last = int(through.argmax())
            worth[load] = through[last]
            parts[load] = parts[load - sizes[last]]
            parts[load, last] += 1
    return worth, parts


def _kept(choices: _Choices, prices: F64, top: int) -> tuple[F64, list[Bools]]:
    """Return the best worth of kept topics for each member and load, and which topics the best choices keep."""
    members = choices.owned.shape[1]
    worth = np.full((members, top + 1), _NEVER)
    worth[:, 0] = 0
    keeps = []
    for owned, number in zip(choices.owned, choices.number, strict=True):
        before = np.arange(top + 1) - choices.sizes[number][:, None]
        kept = np.take_along_axis(worth, np.maximum(before, 0), axis=1) + (owned - prices[number])[:, None]
        keep = (before >= 0) & (owned > 0)[:, None] & (kept > worth)
        worth = np.where(keep, kept, worth)
        keeps.append(keep)
    return worth, keeps


def _within(received: F64, low: I64, high: I64) -> tuple[F64, I64]:
    """Return the best worth of what is received on top of each kept load, and its load, shapes (M, L)."""
    top = len(received) - 1
    best, size = np.full((len(low), top + 1), _NEVER), np.zeros((len(low), top + 1), dtype=np.int64)
    for least, most in np.unique(np.c_[low, high], axis=0).tolist():
        row, at = np.full(top + 1, _NEVER), np.zeros(top + 1, dtype=np.int64)
        for kept in range(most + 1):
            start = max(0, least - kept)
            at[kept] = start + int(received[start : most - kept + 1].argmax())
            row[kept] = received[at[kept]]
        same = (low == least) & (high == most)
        best[same], size[same] = row, at
    return best, size
