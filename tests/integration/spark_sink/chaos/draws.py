"""Which variant of a form a seed runs. Pure.

The variants of a form are chosen so that the first seeds together cover every pair of values of any two factors: most
faults of software need a certain value of one or two factors, and all combinations would take days.
"""

import itertools
import os
import random
from collections.abc import Mapping, Sequence

import pytest

_ASKED = os.environ.get("AZIMUTH_CHAOS_SEEDS")
SECONDS = float(os.environ.get("AZIMUTH_CHAOS_SECONDS", "20"))
SEEDS = [int(one) for one in (_ASKED or "1").split(",")]
ALSO_SLOW = () if _ASKED else (pytest.mark.slow,)
"""Of the one form that runs with the slow tests, where no seeds are asked for."""

Factors = Mapping[str, Sequence[str]]
Variant = dict[str, str]


def variant(factors: Factors, seed: int) -> Variant:
    """The variant of a seed; seeds count from 1, and after the last variant comes the first again."""
    found = variants(factors)
    return found[(seed - 1) % len(found)]


def variants(factors: Factors) -> list[Variant]:
    """Variants that together have each pair of values; each takes in most of the pairs that are still missing."""
    order = random.Random(0)
    everything = [dict(zip(factors, values, strict=True)) for values in itertools.product(*factors.values())]
    missing = set().union(*map(pairs, everything))
    found: list[Variant] = []
    while missing or not found:
        order.shuffle(everything)
        found.append(max(everything, key=lambda one: len(pairs(one) & missing)))
        missing -= pairs(found[-1])
    return found


def pairs(one: Variant) -> set[tuple[tuple[str, str], ...]]:
    """Each two of its values."""
    return set(itertools.combinations(sorted(one.items()), 2))
