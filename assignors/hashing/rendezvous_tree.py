"""Rendezvous hashing in logarithmic time: a tree of nodes, with a small rendezvous choice at each fork.

The path to a node consists of the hexadecimal digits of its hash: adding or removing a node changes only its path. A
fork chooses among its branches by weighted rendezvous. The weight of a branch is the sum of its nodes' weights, so each
node gets its weighted share. A key is hashed once and costs one score for each branch on its path: about 16 log16 n.

The cost compared with the flat form: a change of a branch's weight also moves keys between the branch's other nodes and
the rest, so a change moves up to log16(n) / n of the keys instead of 1 / n. The benchmark measures both.

Source: Yao et al. 2005 (hierarchical rendezvous), with the weights of Schindelhauer and Schomaker 2005.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from assignors.hashing.murmur3_hash import GOLDEN, hash64, mix64, weighted_score

_BITS: Final = 4
_DEPTH: Final = 64 // _BITS


@dataclass(slots=True)
class _Fork:
    """A fork: its hash, what is below it, and the branches with their number, hash and weight."""

    hash: int
    weight: float = 0.0
    node: str | None = None
    branches: list[tuple[int, "_Fork"]] = field(default_factory=list)


class RendezvousTree:
    """Owners of keys among tens of thousands of nodes.

    Contract: that of `Rendezvous` except for the keys that move on a change (see the module), and with other owners.
    """

    __slots__ = ("_count", "_root", "_seed")

    def __init__(self, nodes: Sequence[str], weights: Mapping[str, float], seed: int = 0) -> None:
        """Build the tree.

        Args:
            nodes: names, each once, one or more.
            weights: of every node, above 0.
            seed: another seed is another, independent ranking.
        """
        self._seed = seed
        self._count = len(nodes)
        paths = sorted((hash64(name, seed), name) for name in nodes)
        self._root = _build(paths, weights, depth=0, prefix=0)

    def top(self, key: str | bytes, k: int) -> list[str]:
        """Return the k best nodes, best first: the owner, then the owner without that node, and so on."""
        start = mix64(hash64(key, self._seed) + GOLDEN)
        gone: dict[int, float] = {}
        out: list[str] = []
        while len(out) < min(k, self._count):
            path, fork = [self._root], self._root
            while fork.node is None:
                fork = _choose(fork, start, gone)
                path.append(fork)
            out.append(fork.node)
            for passed in path:
                gone[passed.hash] = gone.get(passed.hash, 0.0) + fork.weight
        return out

    def owner(self, key: str | bytes) -> str:
        """Return the node that owns the key."""
        start = mix64(hash64(key, self._seed) + GOLDEN)
        fork = self._root
        while fork.node is None:
            fork = _choose(fork, start, {})
        return fork.node


def _choose(fork: _Fork, start: int, gone: Mapping[int, float]) -> _Fork:
    best, chosen = -math.inf, fork
    for name, branch in fork.branches:
        weight = branch.weight - gone.get(branch.hash, 0.0)
        if weight > branch.weight * 1e-9:  # what is left after all nodes are gone is only rounding
            score = weighted_score(mix64(name ^ start), weight)
            if score > best:
                best, chosen = score, branch
    return chosen


def _build(paths: list[tuple[int, str]], weights: Mapping[str, float], depth: int, prefix: int) -> _Fork:
    """Build the part of the tree below a prefix of `depth` digits; paths are sorted by hash."""
    here = mix64(prefix * 2 * _DEPTH + depth)
    if len(paths) == 1:
        value, name = paths[0]
        # The leaf has the hash of its whole path: other leaves of its branch do not change it.
        return _Fork(hash=value, weight=weights[name], node=name)
    fork = _Fork(hash=here)
    if depth == _DEPTH:  # equal hashes: separated by name
        parts = [(mix64(here ^ hash64(name)), [(hash64(name, 1), name)]) for _, name in paths]
    else:
        digits: dict[int, list[tuple[int, str]]] = {}
        for value, name in paths:
            digits.setdefault(value >> (64 - _BITS * (depth + 1)), []).append((value, name))
        parts = [(mix64(digit * 2 * _DEPTH + depth + 1), below) for digit, below in sorted(digits.items())]
    for name_hash, below in parts:
        digit_prefix = below[0][0] >> (64 - _BITS * min(depth + 1, _DEPTH))
        fork.branches.append((name_hash, _build(below, weights, min(depth + 1, _DEPTH), digit_prefix)))
    fork.weight = math.fsum(branch.weight for _, branch in fork.branches)
    return fork
