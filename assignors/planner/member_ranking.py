"""Ranks the members for each topic, by rendezvous hashing or by a seeded shuffle."""

from typing import Final, Literal

import numpy as np

from assignors.hashing.murmur3_hash import GOLDEN, U64, hash64s, mix64s, order_keys, weighted_scores
from assignors.planner.input_arrays import I64, Problem
from assignors.planner.place_unowned import Scores
from assignors.planner.plan_loops import mix_pairs

Strategy = Literal["hrw", "shuffled"]
STRATEGIES: Final = ("hrw", "shuffled")


def member_scores(problem: Problem, strategy: Strategy, seed: int) -> Scores:
    """Return the preferences of the strategy: a function from topic numbers, shape (N,), to scores, shape (N, M)."""
    return hrw_scores(problem, seed) if strategy == "hrw" else shuffled_scores(problem, seed)


def hrw_scores(problem: Problem, seed: int) -> Scores:
    """Rank by highest random weight of topic and identity."""
    keys = mix64s(hash64s([t.name for t in problem.topics], seed) + np.uint64(GOLDEN))
    equal = bool((problem.weights == problem.weights[0]).all())

    def scores(topics: I64) -> U64:
        pairs = mix_pairs(problem.hashes, keys[topics])
        return pairs if equal else order_keys(weighted_scores(pairs, problem.weights))

    return scores


def shuffled_scores(problem: Problem, seed: int) -> Scores:
    """Rank by position in a seeded shuffle of the members; each topic starts where the previous one ended."""
    count = len(problem.members)
    place = np.empty(count, dtype=np.int64)
    place[np.argsort(mix64s(problem.hashes + np.uint64(seed & 0xFFFFFFFF)), kind="stable")] = np.arange(count)

    def scores(topics: I64) -> U64:
        return (count - (place - problem.first[topics][:, None]) % count).astype(np.uint64)

    return scores
