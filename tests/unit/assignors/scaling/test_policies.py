"""The decisions of the policies, ours and the baselines."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import AssignorError
from assignors.scaling import (
    DS2,
    NEVER,
    Bounds,
    Capacity,
    Keda,
    Numaflow,
    Policy,
    Scaler,
    State,
    Static,
    Thresholds,
    UsablePartitions,
    Window,
    decide,
)
from assignors.scaling.observation import F64
from assignors.scaling.workers_from_lag_policy import workers_for
from tests.unit.assignors.scaling.conftest import MakeWindow

ALL: list[Policy] = [Capacity(), Thresholds(), Keda(), DS2(), Numaflow(), Static(workers=4)]


@pytest.mark.parametrize("policy", ALL, ids=lambda p: p.name)
@given(st.integers(0, 2**32 - 1))
def test_no_window_makes_a_policy_fail(policy: Policy, seed: int) -> None:
    """Whatever the offsets, sentinels included: a number and a sentence."""
    rng = np.random.default_rng(seed)
    steps, partitions = rng.integers(1, 12), rng.integers(1, 5)
    seen = Window(
        times_s=np.cumsum(rng.uniform(0.1, 60, steps)),
        **{
            name: rng.integers(-2, 10 ** rng.integers(1, 9), (steps, partitions))
            for name in ("start", "end", "committed")
        },
    )
    rate = (None, 1000.0)[rng.integers(2)]
    made = decide(Scaler(policy=policy, limits=(Bounds(most=50),), worker_rate=rate), seen, State(workers=3))
    assert 1 <= made.workers <= 50
    assert made.reason


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=64), st.floats(100, 5000))
def test_workers_for_is_enough_for_equal_partitions_and_never_idle(work: list[float], rate: float) -> None:
    """Between the work there is and the partitions there are."""
    found = workers_for(np.array(work), rate)
    assert 1 <= found <= max(sum(one > 0 for one in work), 1)
    mean = workers_for(np.full(len(work), 10.0), rate)
    assert math.ceil(len(work) / mean) * 10.0 <= rate or mean == len(work)


@given(st.floats(1, 900), st.floats(1.0, 3.0), st.integers(1, 64))
def test_more_to_read_never_asks_for_fewer(work: float, factor: float, partitions: int) -> None:
    """Monotone in the work."""
    some = np.full(partitions, work)
    assert workers_for(some * factor, 1000.0) >= workers_for(some, 1000.0)


@pytest.mark.parametrize(("partitions", "stuck"), [(64, 63), (24, 22)])
def test_ours_does_not_stick_below_the_cap(steady: MakeWindow, partitions: int, stuck: int) -> None:
    """KEDA cuts the lag to partitions x threshold, and the autoscaler's tolerance then hides the last workers."""
    seen = steady([900.0] * partitions, [850.0] * partitions, [400_000] * partitions)
    keda = Scaler(policy=Keda(lag_threshold=60_000), limits=(Bounds(),))
    ours = Scaler(policy=Capacity(), limits=(UsablePartitions(), Bounds()), worker_rate=1000.0)
    assert decide(keda, seen, State(workers=stuck)).workers == stuck
    assert decide(ours, seen, State(workers=stuck)).workers == partitions


def test_capacity_counts_lag_pause_and_rate(steady: MakeWindow) -> None:
    """The equation: lag / C + rate R / C + rate / u, at numbers at which partitions divide evenly."""
    seen = steady([125.0] * 32, [100.0] * 32, [18_750.0] * 32)
    made = decide(Scaler(policy=Capacity(drain_s=300.0), worker_rate=1000.0), seen, State(workers=3))
    equation = 32 * 18_750 / (1000 * 300) + 4000 * 8 / (1000 * 300) + 4000 / 1000
    assert equation == pytest.approx(6.11, abs=0.01)
    assert made.workers == 7  # 5 partitions each; 6 workers would have 6 each, and one of them too much to read


def test_a_backlog_younger_than_the_objective_asks_for_less(steady: MakeWindow) -> None:
    """It gets no older while as much is read as comes; once it is older than the objective, it is urgent."""
    scaler = Scaler(policy=Capacity(), worker_rate=1000.0)
    young, old = (steady([140.0] * 32, [100.0] * 32, [140.0 * age_s] * 32) for age_s in (150.0, 320.0))
    assert decide(scaler, young, State(workers=4)).workers == 7  # 5,675 a second, 5 partitions each at most
    assert decide(scaler, old, State(workers=4)).workers == 11


def over_an_hour(rates: F64) -> Window:
    """Arrivals of 32 partitions, in steps of 30 s, all of them read."""
    end = np.cumsum(np.concatenate([[0.0], rates * 30.0 / 32]))[:, None].repeat(32, axis=1).astype(np.int64)
    times = (1e6 + 30.0 * np.arange(len(end))).astype(np.float64)
    return Window(times_s=times, start=np.zeros_like(end), end=end, committed=end)


def test_a_number_below_the_demand_says_why_it_is_kept(steady: MakeWindow) -> None:
    """The records are too young for another worker; the sentence named a demand above the number and no reason."""
    ours = Scaler(policy=Capacity(), limits=(Bounds(),), worker_rate=20.0)
    busy = decide(ours, steady([10.0] * 4, [10.0] * 4, [0] * 4), State(workers=1))
    assert (busy.workers, busy.reason.endswith("; more only if a record would soon be 165 s old")) == (1, True), busy
    calm = decide(ours, steady([4.0] * 4, [4.0] * 4, [0] * 4), State(workers=1))
    assert (calm.workers, "more only if" in calm.reason) == (1, False), calm


def test_a_dip_in_a_rising_load_takes_nobody_away() -> None:
    """6,500 a second are less than 8 workers of 4 partitions need; but it was more, and will be."""
    scaler = Scaler(policy=Capacity(), worker_rate=1000.0)
    rising = np.linspace(5500.0, 7500.0, 120)
    dip = np.where(np.arange(120) >= 100, 6200.0, rising)
    flat = np.full(120, 6200.0)
    assert decide(scaler, over_an_hour(flat), State(workers=8)).workers == 7
    assert decide(scaler, over_an_hour(dip), State(workers=8)).workers == 8


def test_noise_hardly_ever_turns_a_daily_rise_around() -> None:
    """Two hours of a rise with 4 percent of noise in five minutes: in 99 of 100 no worker that it will need goes."""
    kept = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        rising = np.linspace(3700.0, 4900.0, 240) * (1 + rng.normal(0.0, 0.04, 24).repeat(10))
        rising[-20:] = 4900.0  # the last ten minutes, which the present rate is measured over
        seen = over_an_hour(rising)
        state = State(workers=8, changed_s=seen.now_s - 3000.0)
        kept.append(decide(Scaler(policy=Capacity(), worker_rate=1000.0), seen, state).workers)
    assert min(kept) >= 6
    assert np.mean(np.array(kept) < 7) <= 0.01


def test_the_end_of_a_burst_takes_its_workers_away() -> None:
    """A quarter of an hour of triple load does not keep the workers, because it is not the trend of the hour."""
    bursts = np.full(120, 3000.0)
    bursts[65:95] = 9000.0
    seen = over_an_hour(bursts)
    made = decide(Scaler(policy=Capacity(), worker_rate=1000.0), seen, State(workers=16, changed_s=seen.now_s - 1800))
    assert made.workers <= 4


def test_a_change_to_fewer_must_pay() -> None:
    """Half of the workers pay after half an hour, one of eight only after two hours."""
    policy = Capacity(price_s=900.0)
    half, eighth = (over_an_hour(np.full(120, rate)) for rate in (3800.0, 6200.0))

    def after(seen: Window, stood_s: float) -> int:
        state = State(workers=8, changed_s=seen.now_s - stood_s)
        return decide(Scaler(policy=policy, worker_rate=1000.0), seen, state).workers

    assert [after(half, 1700.0), after(half, 1900.0)] == [8, 4]
    assert [after(eighth, 7000.0), after(eighth, 7300.0)] == [8, 7]


def test_fewer_may_be_short_while_nobody_waits_too_long() -> None:
    """32 partitions of 93.3: three workers hold 11 at most, 2.6 percent too much. That uses up 165 s in 106 minutes."""
    barely, too_much = (over_an_hour(np.full(240, rate)) for rate in (2986.0, 3040.0))

    def after(seen: Window, stood_s: float, **settings: float) -> int:
        state = State(workers=4, changed_s=seen.now_s - stood_s)
        return decide(Scaler(policy=Capacity(**settings), worker_rate=1000.0), seen, state).workers

    assert after(barely, 3000.0) == 3, "a quarter pays in 47 minutes, and twice in 93"
    assert after(barely, 2700.0) == 4
    assert after(barely, 20_000.0, price_s=2000.0) == 4, "where it takes longer to pay, they would have been too late"
    assert after(barely, 3000.0, shortfall=0.01) == 4
    assert after(too_much, 20_000.0) == 4


def test_the_workers_with_one_partition_fewer_count_too() -> None:
    """16 partitions over 5: one worker has 4, four have 3, and unlike partitions make one of these the heaviest."""
    unlike = np.array([500.0, 20.0] * 8)
    assert workers_for(np.full(16, unlike.mean()), 1050.0) == 4
    assert workers_for(unlike, 1050.0) > 5


def test_retention_is_a_deadline(steady: MakeWindow) -> None:
    """Records that retention would delete in two minutes must be read in one, whatever the objective."""
    seen = steady([100.0] * 32, [50.0] * 32, [100_000.0] * 32)
    relaxed = Capacity(slo_s=7200.0)
    without = decide(Scaler(policy=relaxed, worker_rate=1000.0), seen, State(workers=4)).workers
    near = decide(Scaler(policy=relaxed, worker_rate=1000.0, retention_s=1200.0), seen, State(workers=4)).workers
    assert near > without


def test_thresholds_follow_the_trend(steady: MakeWindow) -> None:
    """High and rising: one more. High and falling: it is already going away. Low: one fewer."""
    policy = Thresholds(min_lag=1000, max_lag=10_000)
    rising, falling = steady([100] * 2, [90] * 2, [50_000] * 2), steady([90] * 2, [100] * 2, [50_000] * 2)
    low = steady([90] * 2, [90] * 2, [100] * 2)
    numbers = [decide(Scaler(policy=policy), seen, State(workers=5)).workers for seen in (rising, falling, low)]
    assert numbers == [6, 5, 4]


def test_thresholds_need_fewer_workers_for_little_data_or_a_sharp_fall(steady: MakeWindow) -> None:
    """Each is enough, as published: little data that rises a bit, and a high lag that will soon be gone."""
    policy = Thresholds(min_lag=1000, max_lag=10_000, falling_s=60.0)
    little, sharply = steady([101] * 2, [100] * 2, [400] * 2), steady([100] * 2, [2000] * 2, [50_000] * 2)
    slowly = steady([100] * 2, [200] * 2, [50_000] * 2)

    def workers(seen: Window, policy: Thresholds = policy) -> int:
        return decide(Scaler(policy=policy), seen, State(workers=5)).workers

    assert [workers(seen) for seen in (little, sharply, slowly)] == [4, 4, 5]
    assert workers(sharply, replace(policy, falling_s=0.0)) == 5, "0 s: no fall is sharp"


def test_retention_makes_steps_up_larger_and_steps_down_smaller(steady: MakeWindow) -> None:
    """With unlimited retention all steps are equal; near the end of the retention no worker leaves."""
    rising = steady([100.0] * 2, [99.0] * 2, [90_000.0] * 2)  # the oldest record is 900 s old
    little = steady([1.0] * 2, [1.0] * 2, [900.0] * 2)  # as old

    def change(seen: Window, retention_s: float | None, max_lag: int = 10_000) -> int:
        policy = Thresholds(
            min_lag=5000, max_lag=max_lag, step=2, step_down=4, retention_step=8, retention_s=retention_s
        )
        scaler = Scaler(policy=policy, retention_s=retention_s)
        return decide(scaler, seen, State(workers=10)).workers - 10

    assert [change(rising, kept_s) for kept_s in (None, 9000.0, 1800.0, 1300.0, 1000.0)] == [2, 2, 5, 7, 8]
    assert [change(little, kept_s) for kept_s in (None, 9000.0, 1800.0, 1201.0)] == [-4, -4, -2, -1]
    assert change(rising, 1000.0, max_lag=10**9) == 8, "without a high lag, because records are soon deleted"


def test_a_trend_covers_the_time_that_it_is_given(steady: MakeWindow) -> None:
    """A backlog that rose for an hour and now falls is gone soon, which a line through the hour does not show."""
    seen = steady([100.0] * 2, [90.0] * 2, [50_000.0] * 2)
    committed = seen.committed.copy()
    committed[-5:] += np.arange(1, 6)[:, None] * 9500
    falling = replace(seen, committed=np.minimum(committed, seen.end))
    whole = decide(Scaler(policy=Thresholds(min_lag=1, max_lag=2)), falling, State(workers=5))
    recent = decide(Scaler(policy=Thresholds(min_lag=1, max_lag=2, trend_s=120.0)), falling, State(workers=5))
    assert (whole.workers, recent.workers) == (6, 4), (whole.reason, recent.reason)


def test_keda_counts_an_uncommitted_partition_as_published() -> None:
    """As 1 with offsetResetPolicy latest, as its end offset with earliest: a day of old data is then lag."""
    one = np.array([[1_000_000, 500]], dtype=np.int64)
    seen = Window(times_s=np.array([0.0]), start=one - 100, end=one, committed=np.full_like(one, NEVER))
    view = decide(Scaler(policy=Static(workers=1)), seen, State()).view
    assert Keda(lag_threshold=10_000_000).metric(view) == 2
    assert Keda(lag_threshold=10_000_000, reset_earliest=True).metric(view) == 1_000_500


def test_ds2_divides_by_the_true_rate(steady: MakeWindow) -> None:
    """The backlog does not count."""
    seen = steady([115.0] * 32, [115.0] * 32, [100_000.0] * 32)
    assert decide(Scaler(policy=DS2(), worker_rate=1000.0), seen, State(workers=1)).workers == 4


def test_numaflow_scales_by_the_time_to_read_what_waits(steady: MakeWindow) -> None:
    """40 s of work against a target of 20 s: the double."""
    seen = steady([100.0] * 10, [100.0] * 10, [4000.0] * 10)
    assert decide(Scaler(policy=Numaflow(target_s=20.0)), seen, State(workers=3)).workers == 6


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        (Capacity, {"slo_s": -1.0}),
        (Capacity, {"slo_s": math.nan}),
        (Capacity, {"slo_s": 5.0, "rebalance_s": 10.0}),
        (Capacity, {"retention_part": 0.0}),
        (Thresholds, {"min_lag": 10, "max_lag": 5}),
        (Thresholds, {"step_down": 0}),
        (Thresholds, {"falling_s": -1.0}),
        (Thresholds, {"trend_s": 0.0}),
        (Thresholds, {"retention_begin": 0.8, "retention_part": 0.3}),
        (Keda, {"lag_threshold": 0}),
        (Numaflow, {"target_s": 0.0}),
        (Static, {"workers": 0}),
    ],
)
def test_settings_without_a_meaning_are_named(policy: type, settings: dict[str, float]) -> None:
    """The message has the setting and its value."""
    with pytest.raises(AssignorError, match=next(iter(settings))):
        policy(**settings)
