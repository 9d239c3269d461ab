"""The application's own partitioners within the zone: each chooses one of the candidate partitions of a record."""

import operator
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import count
from random import choice

from producer.errors import PolicyError

Choose = Callable[[bytes | None, Sequence[int]], int]
"""Maps a key (None for a record without one) and the candidates, ascending and not empty, to one of the candidates."""


def chooser(choose: str | Choose) -> Choose:
    """Return a partitioner for one topic: `"random"`, `"round_robin"`, or the given callable.

    Raises:
        PolicyError: the value is none of these.
    """
    if choose == "random":
        return _random
    if choose == "round_robin":
        return _round_robin()
    if callable(choose):
        return choose
    raise PolicyError(f"choose={choose!r}: give 'random', 'round_robin', or a callable of a key and partitions")


def _random(key: bytes | None, candidates: Sequence[int]) -> int:  # noqa: ARG001 - the partitioner ignores keys
    return choice(candidates)  # noqa: S311 - spreads load, guards nothing


def _round_robin() -> Choose:
    numbers = count()
    return lambda _key, candidates: candidates[next(numbers) % len(candidates)]


def chosen_by(choose: Choose, topic: str, key: bytes | None, candidates: Sequence[int]) -> int:
    """Call a partitioner, and check its answer.

    Raises:
        PolicyError: the partitioner raised an error, or chose another partition.
    """
    try:
        chosen = operator.index(choose(key, candidates))
    except Exception as error:
        raise PolicyError(f"topic {topic!r}: choose() failed with {type(error).__name__}: {error}") from error
    place = bisect_left(candidates, chosen)
    if place == len(candidates) or candidates[place] != chosen:
        few = ", ".join(map(str, candidates[:6])) + (", ..." if len(candidates) > 6 else "")  # noqa: PLR2004 - enough to see
        raise PolicyError(f"topic {topic!r}: choose() returned partition {chosen}, need one of {few}")
    return chosen
