"""Rendezvous hashing: every process ranks the same nodes for a key in the same way, without communication.

Source: Thaler and Ravishankar 1998 (highest random weight); Schindelhauer and Schomaker 2005 (weights).
"""

import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from assignors.errors import NodesError, WeightError
from assignors.hashing.murmur3_hash import GOLDEN, U64, hash64, hash64s, mix64, mix64s, order_keys, weighted_scores
from assignors.hashing.rendezvous_tree import RendezvousTree


class Rendezvous:
    """Owners of keys by highest random weight.

    Contract:
    * Equal nodes, weights and seed give equal answers in every process and on every machine, in any order of `nodes`.
    * When a node leaves, only its keys move, each to its own second choice; a node that joins takes its share, and no
      other key moves. A higher weight attracts keys, and moves none between the other nodes.
    * Immutable: threads may share it.
    """

    __slots__ = ("_equal", "_hashes", "_nodes", "_seed", "_tree", "_weights")

    def __init__(
        self,
        nodes: Iterable[str],
        weights: Mapping[str, float] | Iterable[float] | None = None,
        seed: int = 0,
        *,
        hierarchical: bool = False,
    ) -> None:
        """Take the nodes and their weights.

        Args:
            nodes: names, one or more, each once.
            weights: by name (a missing one is 1.0), or in the order of `nodes`; above 0, no unit. None: all equal.
            seed: another seed is another, independent ranking.
            hierarchical: for tens of thousands of nodes: time grows with the logarithm of their number, owners differ
                from those of the flat form, and a change moves up to a few times as many keys.

        Raises:
            NodesError: no node, one named twice, or an argument of another type.
            WeightError: a weight is not above 0 and finite, names no node, or their number differs from the nodes'.
        """
        if not isinstance(nodes, Iterable):
            raise NodesError(f"nodes={nodes!r}: need a list of names")
        try:
            seed = operator.index(seed)
        except TypeError as error:
            raise NodesError(f"seed={seed!r}: need a whole number") from error
        given = list(nodes)
        if not all(isinstance(name, str) for name in given):
            raise NodesError(f"nodes={given!r}: need names that are texts")
        if not given or len(set(given)) != len(given):
            counts = Counter(given)
            twice = sorted(n for n, times in counts.items() if times > 1)
            raise NodesError(f"nodes={given!r}: " + (f"{twice} named more than once" if twice else "need at least one"))
        by_name = _weights_by_name(given, weights)
        self._nodes = sorted(given)
        self._tree = RendezvousTree(self._nodes, by_name, seed) if hierarchical else None
        self._seed = seed
        self._hashes: U64 = hash64s(self._nodes, seed)
        self._weights = np.array([by_name[n] for n in self._nodes])
        self._equal = bool((self._weights == self._weights[0]).all())

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, sorted."""
        return tuple(self._nodes)

    def owner(self, key: str | bytes) -> str:
        """Return the node that owns the key.

        Raises:
            TypeError: the key is neither text nor bytes.
        """
        try:
            if self._tree is not None:
                return self._tree.owner(key)
            return self._nodes[int(np.argmax(self._scores(key)))]
        except TypeError as error:
            raise _wrong_type(key) from error

    def top(self, key: str | bytes, k: int) -> list[str]:
        """Return the k best nodes, best first; all of them where k is larger.

        Raises:
            TypeError: the key is neither text nor bytes, or k is not a whole number.
        """
        try:
            k = operator.index(k)
            return self._top(key, k)
        except TypeError as error:
            raise _wrong_type(key, k) from error

    def _top(self, key: str | bytes, k: int) -> list[str]:
        if self._tree is not None:
            return self._tree.top(key, k)
        scores = self._scores(key)
        k = max(0, min(k, len(self._nodes)))
        if k < len(self._nodes) // 4:
            best = np.argpartition(scores, -k)[-k:] if k else np.array([], dtype=np.intp)
            order = best[np.lexsort((best, ~scores[best]))]
        else:
            order = np.argsort(~scores, kind="stable")[:k]
        return [self._nodes[i] for i in order]

    def ranked(self, key: str | bytes) -> list[str]:
        """Return all nodes, best first: where the first fails, the next takes over."""
        return self.top(key, len(self._nodes))

    def _scores(self, key: str | bytes) -> U64:
        pairs = mix64s(self._hashes ^ np.uint64(mix64(hash64(key, self._seed) + GOLDEN)))
        return pairs if self._equal else order_keys(weighted_scores(pairs, self._weights))


def _wrong_type(key: object, k: object = 1) -> TypeError:
    name, given, kind = ("key", key, "a text or bytes") if isinstance(k, int) else ("k", k, "a whole number")
    return TypeError(f"{name}={given!r}: need {kind}")


def _weights_by_name(nodes: list[str], weights: Mapping[str, float] | Iterable[float] | None) -> dict[str, float]:
    if weights is None:
        return dict.fromkeys(nodes, 1.0)
    if isinstance(weights, Mapping):
        by_name = dict.fromkeys(nodes, 1.0) | dict(weights)
    elif isinstance(weights, str | bytes) or not isinstance(weights, Iterable):
        raise WeightError(f"weights={weights!r}: need a mapping, or a list in the order of nodes")
    else:
        values = list(weights)
        if len(values) != len(nodes):
            raise WeightError(f"{len(values)} weights for {len(nodes)} nodes: give one for each, or a mapping")
        by_name = dict(zip(nodes, values, strict=True))
    if unknown := sorted(set(by_name) - set(nodes), key=repr):
        raise WeightError(f"weights of unknown nodes: {unknown}")
    for name, weight in by_name.items():
        try:
            fits = weight > 0 and math.isfinite(weight)
        except (TypeError, OverflowError):  # text, None; a whole number beyond any float
            fits = False
        if not fits:
            raise WeightError(f"node {name!r}: weight={weight!r}, need a finite number above 0")
    return by_name
