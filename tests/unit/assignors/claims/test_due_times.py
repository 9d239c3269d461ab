"""When a partition is due: few visits of quiet partitions, and no partition starves."""

import heapq
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.claims import ClaimsError, Lease, Picking, Visit

volumes = st.floats(0, 1e7)
pickings = st.builds(
    Picking,
    worth_records=st.floats(0, 1e6),
    longest_s=st.floats(0, 3600),
    half_life_s=st.floats(0.1, 1e5),
)


def visits_of(picking: Picking, rates: list[float], *, most: int, step_s: float, steps: int) -> list[list[float]]:
    """Simulate claims by due time, `most` every `step_s`; each partition's times of visits."""
    due = [(0.0, n) for n in range(len(rates))]
    heapq.heapify(due)
    times: list[list[float]] = [[] for _ in rates]
    smoothed = [0.0] * len(rates)
    for step in range(steps):
        now = step * step_s
        taken: list[int] = []
        while due and due[0][0] <= now and len(taken) < most:
            taken.append(heapq.heappop(due)[1])
        for n in taken:
            elapsed_s = now - times[n][-1] if times[n] else None
            visit = Visit(records=int(rates[n] * (elapsed_s or 0)))
            smoothed[n] = picking.volume(smoothed[n], visit, elapsed_s)
            heapq.heappush(due, (now + picking.pause_s(smoothed[n], visit), n))
            times[n].append(now)
    return times


@given(picking=pickings, volume=volumes, records=st.integers(0, 10**9), more=st.booleans())
def test_a_pause_is_bounded_and_ends_at_once_where_records_are_left(
    picking: Picking, volume: float, records: int, *, more: bool
) -> None:
    """Between 0 and `longest_s`, whatever the numbers."""
    pause_s = picking.pause_s(volume, Visit(records=records, more=more))
    assert 0 <= pause_s <= picking.longest_s
    if more:
        assert pause_s == 0


@given(picking=pickings, low=volumes, high=volumes)
def test_more_volume_is_due_sooner(picking: Picking, low: float, high: float) -> None:
    """The pause falls as the volume rises."""
    low, high = min(low, high), max(low, high)
    assert picking.pause_s(high, Visit()) <= picking.pause_s(low, Visit()) + 1e-9


@given(picking=pickings, before=volumes, records=st.integers(0, 10**9), elapsed_s=st.floats(1e-3, 1e6))
def test_a_volume_lies_between_what_was_and_what_is(
    picking: Picking, before: float, records: int, elapsed_s: float
) -> None:
    """Smoothing overshoots in no direction, and an unknown time changes nothing."""
    found = picking.volume(before, Visit(records=records), elapsed_s)
    rate = records / elapsed_s
    assert min(before, rate) * (1 - 1e-9) - 1e-9 <= found <= max(before, rate) * (1 + 1e-9) + 1e-9
    for unknown in (None, 0.0, -5.0):
        assert picking.volume(before, Visit(records=records), unknown) == before


@given(
    rates=st.lists(st.sampled_from([0.0, 0.01, 1.0, 100.0, 1e5]), min_size=1, max_size=40),
    most=st.integers(1, 5),
    worth=st.sampled_from([0.0, 10.0, 1000.0]),
)
def test_nobody_starves(rates: list[float], most: int, worth: float) -> None:
    """Busy or quiet, each waits no longer than the longest pause and one round of all partitions."""
    picking = Picking(worth_records=worth, longest_s=20, half_life_s=30)
    steps, step_s = 400, 1.0
    times = visits_of(picking, rates, most=most, step_s=step_s, steps=steps)
    bound_s = picking.longest_s + (math.ceil(len(rates) / most) + 1) * step_s
    for seen in times:
        waits = [b - a for a, b in zip([0.0, *seen], [*seen, steps * step_s], strict=True)]
        assert max(waits) <= bound_s


def test_quiet_partitions_are_not_polled_in_vain() -> None:
    """Ordered only by the last claim, 9 of 10 visits find no records; ordered by volume, busy partitions get them."""
    rates = [0.0] * 90 + [100.0] * 10
    by_volume = visits_of(Picking(worth_records=200, longest_s=60), rates, most=10, step_s=1.0, steps=600)
    by_turn = visits_of(Picking(), rates, most=10, step_s=1.0, steps=600)
    assert sum(map(len, by_turn[:90])) >= 0.9 * sum(map(len, by_turn))
    assert sum(map(len, by_volume[:90])) <= 90 * 12
    assert sum(map(len, by_volume[90:])) >= 2 * sum(map(len, by_turn[90:]))


@pytest.mark.parametrize(
    "settings",
    [{"worth_records": -1}, {"worth_records": math.nan}, {"longest_s": 3601}, {"longest_s": -1}, {"half_life_s": 0}],
    ids=str,
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, float]) -> None:
    """The message names the setting."""
    with pytest.raises(ClaimsError, match=next(iter(settings))):
        Picking(**settings)


@pytest.mark.parametrize(
    ("lease_s", "hold_s"),
    [
        (0, 10),
        (-1, 10),
        (1e-9, 10),
        (20, 10),
        (10, 3601),
        (math.nan, 10),
        (10, math.nan),
        (math.inf, math.inf),
        ("9", 10),
    ],
    ids=str,
)
def test_a_hold_is_an_hour_at_most_and_a_lease_no_longer(lease_s: float, hold_s: float) -> None:
    """No partition is held for ever, and no lease ends before its owner knows it."""
    with pytest.raises(ClaimsError, match=r"(lease|hold)_s="):
        Lease(lease_s=lease_s, hold_s=hold_s)


@pytest.mark.parametrize("records", [-1, 1 << 63, math.nan, True], ids=str)
def test_a_visit_counts_records(records: int) -> None:
    """The number of records becomes a volume, so a wrong number would never be corrected."""
    with pytest.raises(ClaimsError, match="records="):
        Visit(records=records)
