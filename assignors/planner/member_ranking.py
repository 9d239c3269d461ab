"""Ranks the members for each topic, by rendezvous hashing or by a seeded shuffle."""

from typing import Final, Literal

import numpy as np

from assignors.hashing.hash import GOLDEN, U64, hash64s, mix64s, order_keys, weighted_scores
from assignors.planner.input_arrays import Problem
from assignors.planner.place_unowned import Scores

Strategy = Literal["hrw", "shuffled"]
STRATEGIES: Final = ("hrw", "shuffled")
_AT_ONCE: Final = 1 << 17  # pairs hashed in one call: 1 MB; more are hashed topic by topic


def member_scores(problem: Problem, strategy: Strategy, seed: int) -> Scores:
    """Return the preferences of the strategy."""
    return hrw_scores(problem, seed) if strategy == "hrw" else shuffled_scores(problem, seed)


def hrw_scores(problem: Problem, seed: int) -> Scores:
    """Rank by highest random weight of topic and identity."""
    keys = mix64s(hash64s([t.name for t in problem.topics], seed) + np.uint64(GOLDEN))
    equal = bool((problem.weights == problem.weights[0]).all())

    if equal and len(keys) * len(problem.hashes) <= _AT_ONCE:
        return list(mix64s(keys[:, None] ^ problem.hashes[None, :])).__getitem__

    def scores(topic: int) -> U64:
        pairs = mix64s(problem.hashes ^ keys[topic])
        return pairs if equal else order_keys(weighted_scores(pairs, problem.weights))

    return scores


def shuffled_scores(problem: Problem, seed: int) -> Scores:
    """Rank by position in a seeded shuffle of the members; each topic starts where the previous one ended."""
    count = len(problem.members)
    place = np.empty(count, dtype=np.int64)
    place[np.argsort(mix64s(problem.hashes + np.uint64(seed & 0xFFFFFFFF)), kind="stable")] = np.arange(count)

    def scores(topic: int) -> U64:
        return (count - (place - int(problem.first[topic])) % count).astype(np.uint64)

    return scores
