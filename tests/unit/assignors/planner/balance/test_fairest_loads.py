"""Units given one by one to the lowest load."""

import random

import numpy as np
import pytest

from assignors.planner.balance import fairest_loads
from assignors.planner.balance.fairest_loads import water_fill


@pytest.mark.parametrize("seed", range(50))
def test_few_loads_are_filled_one_unit_at_a_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads of few members are filled without arrays: with the result of the arrays, and that of the rule."""
    dice = random.Random(seed)
    load = [dice.randint(0, dice.choice((1, 4, 30))) for _ in range(dice.randint(1, 12))]
    amount = dice.randint(0, 40)
    rule = list(load)
    for _ in range(amount):
        rule[rule.index(min(rule))] += 1
    more = water_fill(amount, np.array(load), np.ones(len(load)))
    monkeypatch.setattr(fairest_loads, "_SINGLE", 0)
    assert (np.array(load) + more).tolist() == rule
    assert water_fill(amount, np.array(load), np.ones(len(load))).tolist() == more.tolist()
