"""The project's only hash function: MurmurHash3 of each name, a 64-bit mixer for each pair.

A name (agent, topic, key, partition) is hashed once. A pair (topic, agent) costs one XOR and one mixer call, so
all topics against all agents are a few vectorised operations. `docs/hash.md` describes it for other languages, and
`tests/data/hash_vectors.json` has the vectors.

Source: MurmurHash3 x64 128 by Austin Appleby; the mixer is the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
"""

import math
from typing import Final

import mmh3
import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]

MASK: Final = 0xFFFFFFFFFFFFFFFF
GOLDEN: Final = 0x9E3779B97F4A7C15
_M1: Final = 0xBF58476D1CE4E5B9
_M2: Final = 0x94D049BB133111EB
_UNIT: Final = 2.0**-52


def hash64(name: str | bytes, seed: int = 0) -> int:
    """Hash a name: the first 64 bits, little endian, of MurmurHash3 x64 128.

    Args:
        name: text (hashed as UTF-8) or bytes.
        seed: 0 to 2**32 - 1; larger ones are cut to their low 32 bits.

    Returns:
        An unsigned 64-bit number. About 150 ns.
    """
    # surrogateescape: a name from bytes that are not UTF-8 must not stop a rebalance.
    data = name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name
    return mmh3.hash64(data, seed & 0xFFFFFFFF, signed=False)[0]


def mix64(value: int) -> int:
    """Mix 64 bits so that each input bit moves each output bit with probability 1/2 (a bijection)."""
    value &= MASK
    value = (value ^ (value >> 30)) * _M1 & MASK
    value = (value ^ (value >> 27)) * _M2 & MASK
    return value ^ (value >> 31)


def pair64(node: int, key: int) -> int:
    """Hash a pair of hashed names. Not symmetric: the key is mixed first.

    Args:
        node: `hash64` of the agent, member, partition or endpoint that may win.
        key: `hash64` of the key that needs an owner.

    Returns:
        An unsigned 64-bit number; if the nodes have equal weights, the node with the highest one owns the key.
    """
    return mix64(node ^ mix64(key + GOLDEN))


def weighted_score(pair: int, weight: float) -> float:
    """Score a pair by the logarithmic method: -weight / ln u, u in (0, 1) from 52 bits (53 round to 1).

    Source: Schindelhauer and Schomaker 2005. With equal weights the order is the order of `pair64` itself.
    """
    return -weight / math.log(((pair >> 12) + 0.5) * _UNIT)


def hash64s(names: list[str], seed: int = 0) -> U64:
    """Hash names, shape (N,)."""
    # One call without a Python integer per name takes half the time of calling `hash64` for each.
    digest, low_seed = mmh3.mmh3_x64_128_digest, seed & 0xFFFFFFFF
    try:
        digests = b"".join([digest(name.encode(), low_seed) for name in names])
    except UnicodeEncodeError:  # naming the error handler for each name takes as long as encoding it
        digests = b"".join([digest(name.encode("utf-8", "surrogateescape"), low_seed) for name in names])
    return np.frombuffer(digests, dtype="<u8")[::2].astype(np.uint64)


def mix64s(values: U64) -> U64:
    """`mix64` of an array; the argument is not changed."""
    out = values ^ (values >> np.uint64(30))
    out *= np.uint64(_M1)
    out ^= out >> np.uint64(27)
    out *= np.uint64(_M2)
    out ^= out >> np.uint64(31)
    return out


def pairs64(nodes: U64, keys: U64) -> U64:
    """`pair64` of each key with each node.

    Args:
        nodes: hashes, shape (N,).
        keys: hashes, shape (K,).

    Returns:
        Shape (K, N).
    """
    return mix64s(nodes[None, :] ^ mix64s(keys + np.uint64(GOLDEN))[:, None])


def weighted_scores(pairs: U64, weights: F64) -> F64:
    """`weighted_score` of an array whose last axis is the nodes.

    Args:
        pairs: from `pairs64`, shape (..., N).
        weights: above 0, shape (N,).
    """
    unit = ((pairs >> np.uint64(12)).astype(np.float64) + 0.5) * _UNIT
    scores: F64 = -weights / np.log(unit)
    return scores


def order_keys(scores: F64) -> U64:
    """Turn scores above 0 into whole numbers of the same order: the bits of a positive float sort as the float does."""
    return scores.view(np.uint64)


def slot_owners(nodes: U64, slots: int) -> NDArray[np.intp]:
    """Rendezvous owner of each slot, for callers that need an owner in constant time.

    A key looks up `slot_owners(...)[hash64(key) % slots]`. When one of n nodes leaves, only its slots (1/n) change.

    Args:
        nodes: `hash64` of the nodes, shape (N,), N of 1 or more.
        slots: how many; 64 or more for each node keep the load within a few percent.

    Returns:
        Index into `nodes`, shape (slots,).
    """
    numbers = mix64s(np.arange(1, slots + 1, dtype=np.uint64) * np.uint64(GOLDEN))
    owners: NDArray[np.intp] = np.argmax(pairs64(nodes, numbers), axis=1)
    return owners
