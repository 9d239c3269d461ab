"""Rendezvous hashing of keys into a set of partitions (`local-hrw`): a partition for every slot of the hash.

It normally scores every partition for a key. Here each of 2^12 or more slots of the hash ranks all partitions of the
topic by a pseudo-random sequence that is drawn only as far as needed: the first drawn partition in the set wins. If a
partition leaves the set, only its slots change; if one enters, slots change only to it. A table stores the winner of
every slot, so a record costs one hash and one look-up at any size.
"""

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
Table = Sequence[int]
"""Partition per slot: a tuple, bytes, an array of 16-bit numbers, or the drawn table of the compiled module."""

SLOTS_AT_LEAST: Final = 1 << 12
SLOTS_PER_PARTITION: Final = 256  # if a slot is a byte
SLOTS_PER_PARTITION_MANY: Final = 64
DRAWS: Final = 64  # draws per slot; a slot that has drawn no partition of the set by then scores all of them
_BYTE: Final = 256  # partitions whose number fits into one byte
_WORD: Final = 1 << 16  # partitions whose number fits into two
_LONG: Final = 256  # slots above which a table is an array; CPython keeps one object for each number up to 256
_CHUNK: Final = 1 << 18  # scores held at once
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


def slots_for(partitions: int) -> int:
    """Return the number of slots of a topic: a power of two that depends only on the partitions, never on leaders."""
    each = SLOTS_PER_PARTITION if partitions <= _BYTE else SLOTS_PER_PARTITION_MANY
    return max(SLOTS_AT_LEAST, 1 << (each * partitions - 1).bit_length())


def hrw_table(partitions: int, members: tuple[int, ...]) -> Table:
    """Find the winner of every slot among some partitions of a topic.

    Args:
        partitions: all partitions of the topic.
        members: the competing set, ascending, not empty.

    Returns:
        Partition per slot; index it with a key's hash modulo its length. Equal arguments give equal tables on every
        machine. Topics of the same shape share one table. Few large ones are cached: at 10,000 partitions one is 2 MB.

    Source: Thaler and Ravishankar 1998 (highest random weight), the ranks drawn lazily.
    """
    return _small_table(partitions, members) if partitions <= _BYTE else _large_table(partitions, members)


def _draw_table(partitions: int, members: tuple[int, ...]) -> Table:
    slots = slots_for(partitions)
    universe = 1 << max(partitions - 1, 0).bit_length()
    inside = np.zeros(universe, dtype=bool)
    inside[list(members)] = True
    winner = np.zeros(slots, dtype=np.uint32)
    waiting = np.arange(slots, dtype=np.uint64)
    for draw in range(DRAWS):
        drawn = _mix(waiting * np.uint64(DRAWS) + np.uint64(draw)) & np.uint64(universe - 1)
        hit = inside[drawn]
        winner[waiting[hit]] = drawn[hit]
        waiting = waiting[~hit]
        if not waiting.size:
            break
    _score_the_rest(winner, waiting, np.array(members, dtype=np.uint64))
    if partitions <= _BYTE:
        # An eighth of a tuple's size: a few kB stay in the caches next to librdkafka's data, so `produce` is faster.
        return winner.astype(np.uint8).tobytes()
    return packed_table(winner.tolist(), partitions)


def packed_table(slots: Sequence[int], partitions: int) -> Table:
    """Return the partition of each slot as a tuple; if it is long, as an array of 16-bit numbers.

    CPython looks up a tuple's item in half the time of an array's, but a long tuple does not stay in the caches: it
    has four times the size, and refers to an object for each partition above 256.
    """
    return array("H", slots) if len(slots) > _LONG and partitions <= _WORD else tuple(slots)


_small_table = lru_cache(maxsize=256)(_draw_table)
_large_table = lru_cache(maxsize=4)(_draw_table)


def _score_the_rest(winner: NDArray[np.uint32], slots: U64, members: U64) -> None:
    """Assign slots that drew no member to the member with the highest score; a later place in the same ranking."""
    step = max(1, _CHUNK // members.size)
    salted = _mix(members + np.uint64(1 << 32))
    for start in range(0, slots.size, step):
        part = slots[start : start + step]
        scores = _mix(_mix(part)[:, None] ^ salted[None, :])
        winner[part] = members[scores.argmax(axis=1)]


def _mix(value: U64) -> U64:
    """Scramble 64 bits, a bijection (the finalizer of SplitMix64: Steele, Lea and Flood 2014)."""
    value = (value + np.uint64(1)) * _GOLDEN
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
