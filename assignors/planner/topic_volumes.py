"""Volumes of seats (an agent's or a member's part of a topic), and the bounds of agents by volume. Pure.

Whole numbers, so that all agents compute the same sums. The largest seats are placed first, because the small ones fill
the room that is left. A small change of one weight should move few topics, so three values change only in steps: the
order of the topics (by powers of two of their volume), the bounds, and the volumes of idle and of unknown topics.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from assignors.errors import WeightError

TopicWeights = Mapping[str, float]
"""Volume of each topic relative to the others, 0 or more, by name: bytes or records a second."""

_MOST: Final = 1e100  # sums stay finite
_UNIT: Final = 1 << 20  # a whole number for weights far below 1
_IDLE: Final = 32
"""An idle topic counts as this part of a mean topic, because it needs connections, too."""
_BITS: Final = 7
"""Significant bits of a bound: it is rounded up by less than 1/64."""


def check_weights(weights: TopicWeights) -> None:
    """Check weights of topics.

    Raises:
        WeightError: not a mapping of names to finite numbers of 0 or more.
    """
    if not isinstance(weights, Mapping):
        raise WeightError(f"weights={weights!r}, need a mapping of topics to numbers")
    for topic, weight in weights.items():
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0 <= weight <= _MOST:
            raise WeightError(f"weight of topic {topic!r}: {weight!r}, need a number from 0 to {_MOST:g}")


def seat_volumes(weights: Sequence[float | None], seats: Sequence[int]) -> list[int]:
    """Return the volume of one seat of each topic.

    Args:
        weights: of the topics, shape (T,); a topic without a known weight counts as the median topic.
        seats: planned seats of each topic, shape (T,), 1 or more.

    Returns:
        Volumes, shape (T,), 1 or more, without a unit.
    """
    known = sorted(math.ceil(one * _UNIT) for one in weights if one is not None)
    if not known:
        return [max(1, _UNIT // count) for count in seats]
    idle = _power_of_two(sum(known) // len(known) // _IDLE)
    usual = max(_power_of_two(known[len(known) // 2]), idle)
    volumes = (usual if one is None else max(math.ceil(one * _UNIT), idle) for one in weights)
    return [max(1, volume // count) for volume, count in zip(volumes, seats, strict=True)]


def volume_bounds(seats: Sequence[int], weights: Sequence[float], epsilon: float) -> list[int]:
    """Return the largest volume of each agent: (1 + epsilon) x its weighted fair share, rounded up by less than 1/64.

    A seat above the fair share fills an agent alone. Such seats and as many agents do not count for the others.

    Args:
        seats: volume of each seat, shape (S,).
        weights: of the agents, shape (A,); 0 for an agent that may hold no seat.
        epsilon: allowed excess, 0 or more.
    """
    free = sum(weight > 0 for weight in weights)
    total, volume = sum(weights), sum(seats)
    if not free or not volume:
        return [0] * len(weights)
    mean = total / free
    for largest in sorted(seats, reverse=True):
        if free == 1 or largest <= volume / free:
            break
        volume, free = volume - largest, free - 1
    fair = volume / (mean * free)
    return [_rounded_up((1 + epsilon) * fair * weight) for weight in weights]


def largest_first(volumes: Sequence[int]) -> list[int]:
    """Return the numbers of the topics, those with the largest power of two first, else in their order."""
    return sorted(range(len(volumes)), key=lambda topic: -volumes[topic].bit_length())


def _power_of_two(number: int) -> int:
    """Return the largest power of two that is not above a number; 1 for 0."""
    return 1 << max(number.bit_length() - 1, 0)


def _rounded_up(bound: float) -> int:
    whole = math.ceil(bound)
    step = 1 << max(whole.bit_length() - _BITS, 0)
    return -(-whole // step) * step
