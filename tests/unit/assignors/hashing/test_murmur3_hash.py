"""The hash agrees with its published vectors and spreads evenly."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import Rendezvous
from assignors.hashing.murmur3_hash import (
    hash64,
    hash64s,
    mix64,
    mix64s,
    order_keys,
    pair64,
    pairs64,
    slot_owners,
    weighted_score,
    weighted_scores,
)

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[3] / "data" / "hash_vectors.json").read_text())


def test_published_vectors_hold() -> None:
    """Another language that follows docs/hash.md meets these numbers; they never change."""
    assert all(hash64(v["name"], v["seed"]) == int(v["hash"], 16) for v in VECTORS["name"])
    assert all(mix64(int(v["value"], 16)) == int(v["mixed"], 16) for v in VECTORS["mix"])
    assert all(pair64(hash64(v["node"]), hash64(v["key"])) == int(v["pair"], 16) for v in VECTORS["pair"])
    scores = [(weighted_score(int(v["pair"], 16), v["weight"]), v["score"]) for v in VECTORS["score"]]
    assert all(got == pytest.approx(wanted, rel=1e-9, abs=1e-9) for got, wanted in scores)
    for v in VECTORS["ranked"]:
        assert Rendezvous(v["nodes"], v["weights"], v["seed"]).ranked(v["key"]) == v["ranked"]
    for v in VECTORS["slots"]:
        assert slot_owners(hash64s(v["nodes"]), v["slots"]).tolist() == v["owners"]


@given(st.lists(st.text(), min_size=1, max_size=8), st.lists(st.text(), min_size=1, max_size=8))
def test_arrays_agree_with_single_values(nodes: list[str], keys: list[str]) -> None:
    """The vectorised form is the scalar form, bit for bit."""
    pairs = pairs64(hash64s(nodes), hash64s(keys))
    assert pairs.tolist() == [[pair64(hash64(n), hash64(k)) for n in nodes] for k in keys]
    assert mix64s(pairs).tolist() == [[mix64(p) for p in row] for row in pairs.tolist()]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=20))
def test_scores_keep_the_order_of_pairs(values: list[int]) -> None:
    """Equal weights rank by score as by pair, and the whole numbers for sorting keep the order of the scores."""
    pairs = np.array(values, dtype=np.uint64)
    scores = weighted_scores(pairs, np.full(len(values), 2.5))
    assert (np.diff(scores[np.argsort(pairs)]) >= 0).all()
    assert (np.argsort(order_keys(scores), kind="stable") == np.argsort(scores, kind="stable")).all()


def test_owners_are_even_and_independent_between_keys() -> None:
    """Chi square of 20,000 keys on 10 nodes, and of the pairs of owners of neighbouring keys on 100 cells."""
    owners = pairs64(hash64s([f"agent-{i}" for i in range(10)]), hash64s([f"t{i}" for i in range(20_000)])).argmax(
        axis=1
    )
    assert ((np.bincount(owners) - 2000) ** 2 / 2000).sum() < 27.9  # 9 degrees of freedom, 0.1 %
    cells = np.bincount(owners[:-1] * 10 + owners[1:], minlength=100)
    assert ((cells - 199.99) ** 2 / 199.99).sum() < 148.2  # 99 degrees of freedom, 0.1 %


def test_names_that_are_no_utf8_are_hashed() -> None:
    """A lone surrogate, as Python makes of undecodable bytes, must not stop a rebalance."""
    assert hash64("bad\udcff") == hash64(b"bad\xff")
