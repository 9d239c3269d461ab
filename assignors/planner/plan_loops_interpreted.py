"""The loops that take most of a plan's time, in numpy.

`plan_loops_compiled.pyx` has the same surface and the same results in C, in a third of the time.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from assignors.errors import GroupError
from assignors.hashing.murmur3_hash import U64, mix64s
from assignors.planner.topics_and_members import TopicPartition

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
_Part = TypeVar("_Part")

_INT16 = 1 << 15
_MOST_PARTITIONS = 1 << 31
_SORT_ALL = 2  # times the needed members: more members are partitioned before they are sorted
_NAME = itemgetter(0)
_NUMBER = itemgetter(1)


def mix_pairs(nodes: U64, keys: U64) -> U64:
    """Mix each node with each key: `pairs64` of keys that are mixed already.

    Args:
        nodes: hashes, shape (N,).
        keys: hashes, shape (K,).

    Returns:
        Shape (K, N).
    """
    return mix64s(nodes ^ keys[:, None])


def give_best(  # noqa: PLR0913, PLR0917 - one loop over all of them
    score: U64, load: I64, limit: I64, low: I64 | None, count: int, spare: int
) -> tuple[I32 | I64, int] | None:
    """Give one partition to each of the best members below their limits.

    Args:
        score: preference of each member, shape (M,); the highest is the best, of equal ones the first.
        load: number of partitions of each member, shape (M,); changed if members are returned.
        limit: loads below which members may get a partition, shape (M,).
        low: lower bounds of the loads, shape (M,); None: all limits are at or below them.
        count: how many members get one, 1 or more.
        spare: how many of them may be at or above their lower bounds.

    Returns:
        The members, best first, shape (count,), and how many of them were below their lower bounds. None, and nothing
        is changed: fewer members are below their limits, or too many are at or above their lower bounds.
    """
    takers = (load < limit).nonzero()[0]
    if len(takers) < count:
        return None
    takers = best(takers, score, count)
    needed = count
    if low is not None:
        needed = int(np.count_nonzero(load[takers] < low[takers]))
        if count - needed > spare:
            return None
    load[takers] += 1
    return takers, needed


def best(members: I64, score: U64, count: int) -> I64:
    """Return the members with the highest scores, best first; not all are sorted if only some are needed."""
    high = score[members]
    if len(members) > _SORT_ALL * count:
        ascending = high.copy()
        ascending.partition(len(high) - count)
        some = (high >= ascending[-count]).nonzero()[0]
        members, high = members[some], high[some]
    order = high.argsort()[::-1]
    ordered = high[order]
    if np.count_nonzero(ordered[1:] == ordered[:-1]):  # seldom: a stable sort each time would take twice as long
        order = (~high).argsort(kind="stable")
    return members[order[:count]]


def claimed_places(
    number_of: Mapping[str, int], owned: Sequence[Collection[TopicPartition]], first: I64
) -> tuple[I64, I64]:
    """Find the claims on partitions that exist.

    Args:
        number_of: number of each topic by name.
        owned: claims of each member.
        first: number of the first partition of each topic, shape (T + 1,).

    Returns:
        Partition and member of each claim, shapes (C,); members ascend.

    Raises:
        GroupError: a claim is not a pair.
    """
    pairs = list(itertools.chain.from_iterable(owned))
    if not pairs:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    try:
        names, numbers = list(map(_NAME, pairs)), list(map(_NUMBER, pairs))
    except (IndexError, TypeError, KeyError) as error:
        raise GroupError(f"owned of a member: {error}; need pairs of a topic's name and a number") from error
    try:
        topic = np.fromiter(map(number_of.__getitem__, names), dtype=np.int64, count=len(pairs))
    except KeyError:  # claims on a topic that no member reads or that does not exist
        known = dict.fromkeys(names, -1) | dict(number_of)
        topic = np.fromiter(map(known.__getitem__, names), dtype=np.int64, count=len(pairs))
    try:
        partition = np.fromiter(numbers, dtype=np.int64, count=len(pairs))
    except (OverflowError, TypeError, ValueError):  # beyond any number of a partition, or none at all, such as NaN
        fits = [isinstance(n, int) and -1 < n < _MOST_PARTITIONS for n in numbers]
        partition = np.array([n if fit else -1 for n, fit in zip(numbers, fits, strict=True)], dtype=np.int64)
    member = np.repeat(np.arange(len(owned)), list(map(len, owned)))
    sizes = np.r_[np.diff(first), 0]  # the last one for topics that are not there
    exists = (partition >= 0) & (partition < sizes[topic])
    at = first[topic] + partition
    return (at, member) if exists.all() else (at[exists], member[exists])


def pairs_of_members(names: list[str], first: I64, owner: I32, members: int) -> list[list[TopicPartition]]:
    """List the partitions of each member, sorted by topic and number.

    Args:
        names: of the topics.
        first: number of the first partition of each topic, shape (T + 1,).
        owner: member of each partition, negative if it has none, shape (P,).
        members: how many there are.
    """
    owners, topic, number = sorted_by_owner(first, owner, members)
    return with_names(names, topic, number.tolist(), owners, members)


def sorted_by_owner(first: I64, owner: I32, members: int) -> tuple[I32, I64, I64]:
    """Return owner, topic and number of each partition, in this order, shapes (P,); arguments as above."""
    # Sorts of 16 bits take a sixteenth of the time. Stable: partitions are in the order of topic and number.
    at = np.argsort(owner.astype(np.int16) if members <= _INT16 else owner, kind="stable")
    topic = np.repeat(np.arange(len(first) - 1), np.diff(first))[at]
    return owner[at], topic, at - first[topic]


def with_names(
    names: list[str], topic: I64, parts: Sequence[_Part], owner: I32, members: int
) -> list[list[tuple[str, _Part]]]:
    """List the pairs of a topic's name and a part of the topic for each member.

    Args:
        names: of the topics.
        topic: topic of each part, shape (N,).
        parts: N of them, sorted by owner.
        owner: member of each part, negative if it has none, shape (N,).
        members: how many there are.
    """
    pairs = list(zip(np.array(names, dtype=object)[topic].tolist(), parts, strict=True))
    ends = np.cumsum(np.bincount(owner + 1, minlength=members + 1)).tolist()
    return [pairs[start:end] for start, end in itertools.pairwise(ends)]
