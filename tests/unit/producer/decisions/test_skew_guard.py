"""The amount of locality that the guard gives up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer import PolicyError, SkewGuard
from producer.decisions.skew_guard import spill

ZONES = ("az-a", "az-b", "az-c", "az-d")


def loads(guard: SkewGuard, zones: list[str | None]) -> tuple[list[float], float]:
    """Add up the bytes of all producers on every partition, and the share that deliberately left its zone."""
    total = sum(guard.zones.values())
    load = [0.0] * len(zones)
    left = 0.0
    for zone, share in guard.zones.items():
        own = [number for number, where in enumerate(zones) if where == zone]
        plan = spill(guard, zones, zone)
        left += plan.share * share / total
        for number in range(len(zones)):
            home = (1 - plan.share) / len(own) if number in own else 0.0
            load[number] += share / total * (home + plan.share * plan.weights[number])
    return load, left


@given(
    st.lists(st.sampled_from(ZONES), min_size=2, max_size=40),
    st.lists(st.floats(0.1, 10), min_size=4, max_size=4),
    st.floats(1.05, 3),
)
def test_the_bound_holds_for_all_producers_together(zones: list[str], shares: list[float], bound: float) -> None:
    """Each producer computes only its part; in total max/mean is within the bound and no byte is lost."""
    present = sorted(set(zones))
    guard = SkewGuard(bound=bound, zones=dict(zip(present, shares, strict=False)))
    load, _ = loads(guard, list(zones))
    assert sum(load) == pytest.approx(1)
    assert max(load) * len(zones) <= bound * (1 + 1e-9)


def test_two_zones_of_three_give_away_just_what_the_bound_asks() -> None:
    """1.5 times the mean at home; down to 1.2 costs a fifth of the bytes, and 1.5 costs nothing."""
    zones: list[str | None] = ["az-a", "az-b", "az-c"] * 4
    tight = SkewGuard(bound=1.2, zones={"az-a": 1, "az-b": 1})
    load, left = loads(tight, zones)
    assert max(load) * 12 == pytest.approx(1.2)
    assert left == pytest.approx(0.2)
    assert spill(tight, zones, "az-a").weights[2::3] == pytest.approx([0.25] * 4)
    loose = SkewGuard(bound=1.5, zones={"az-a": 1, "az-b": 1})
    assert spill(loose, zones, "az-a").share == 0


def test_without_knowledge_of_the_others_the_own_zone_is_all() -> None:
    """One local partition of three, bound 2: a third of the bytes leave."""
    assert spill(SkewGuard(bound=2), ["az-a", "az-b", "az-c"], "az-a").share == pytest.approx(1 / 3)
    assert spill(SkewGuard(bound=3), ["az-a", "az-b", "az-c"], "az-a").share == 0
    assert spill(SkewGuard(bound=2), ["az-b", None], "az-a").share == 0


@pytest.mark.parametrize("arguments", [{"bound": 1}, {"bound": float("nan")}, {"zones": {"az-a": -1}}])
def test_a_guard_that_cannot_work_is_named(arguments: dict[str, object]) -> None:
    """A bound of 1 would mean no locality at all."""
    with pytest.raises(PolicyError):
        SkewGuard(**arguments)  # type: ignore[arg-type] # the mistake itself
