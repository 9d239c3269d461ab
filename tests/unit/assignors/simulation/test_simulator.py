"""The simulator's counts are consistent, the oracle meets the objective, and policies keep their promises over time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import AssignorError
from assignors.scaling import Scaler, Static
from assignors.scaling.pipelines import Pipeline
from assignors.simulation.policy_comparison import compare_policies, scaler_for
from assignors.simulation.score import record_ages, score
from assignors.simulation.simulator import simulate
from assignors.simulation.traces import STANDARD_TRACES, TRACES, Trace, generate_traces, readable


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_records_are_read_once_or_lost(seed: int, workers: int) -> None:
    """No worker reads records that were not written, or faster than one worker per partition could."""
    rng = np.random.default_rng(seed)
    arrivals = rng.poisson(rng.uniform(0, 2000, 5), (60, 5)).astype(np.int64)
    blocked = rng.random((60, 5)) < 0.1
    trace = Trace(name="any", step_s=1.0, arrivals=arrivals, blocked=blocked, retention_s=20.0)
    run = simulate(trace, Scaler(policy=Static(workers=workers)))
    assert (run.committed <= run.written).all()
    assert (np.diff(run.committed, axis=0) >= 0).all()
    assert (run.committed <= readable(trace) + run.lost).all()
    read = np.diff(run.committed, axis=0, prepend=0).sum(axis=1)
    assert (read <= workers * 1000 + run.lost).all()


def test_ages_are_those_of_the_oldest_unread_record() -> None:
    """Against counting by hand: 10 records a step, 5 read."""
    written = np.arange(10, 110, 10, dtype=np.int64)[:, None]
    committed = written // 2
    found = record_ages(written, committed, 30.0)[:, 0]
    for t in range(10):
        oldest = next(s for s in range(10) if written[s, 0] > committed[t, 0])
        assert found[t] == (t - oldest) * 30.0


@pytest.mark.parametrize(
    "name", ["diurnal", *(pytest.param(one, marks=pytest.mark.slow) for one in ("bursts", "random-walk"))]
)
def test_capacity_keeps_the_objective_near_the_oracle(name: str) -> None:
    """Half a day of each: no record too old that a worker could have read, with little more than the least."""
    oracle, ours = compare_policies([generate_traces(name, days=0.5)], ["capacity"], Pipeline())
    assert oracle.score.over_slo_avoidable == 0
    assert ours.score.over_slo_avoidable == 0
    assert ours.ratio is not None
    assert 0.95 < ours.ratio < 1.5


def test_a_hot_partition_is_reported_within_two_decisions_and_not_scaled() -> None:
    """After two observations it is reported; the topic costs as much as without it."""
    (trace,) = generate_traces("hot", days=0.5)
    run = simulate(trace, scaler_for("capacity", trace, Pipeline()))
    begin = len(trace.arrivals) // 2
    seen_s, sentence = run.findings["hot"]
    assert begin * trace.step_s < seen_s <= (begin + 2) * trace.step_s
    assert "(7)" in sentence
    cool = replace(trace, arrivals=np.where(np.arange(32) == 7, trace.arrivals[:, [0]], trace.arrivals))
    without = simulate(cool, scaler_for("capacity", cool, Pipeline()))
    assert run.workers[begin:].sum() <= 1.15 * without.workers[begin:].sum()


def test_the_published_scenario_has_a_lag_that_stays() -> None:
    """The load rises to 16 times its start; the lag of the last hours is not larger than that of the first."""
    (trace,) = generate_traces("published", days=0.5)
    run = simulate(trace, scaler_for("capacity", trace, Pipeline()))
    assert run.workers[-1] >= 7
    assert score(run, 300.0).over_slo == 0


@pytest.mark.parametrize("name", [*STANDARD_TRACES, "published"])
def test_a_trace_is_made_from_its_seed(name: str) -> None:
    """Equal seeds, equal traces; whole numbers of records."""
    one, same = generate_traces(name, days=0.02, seed=5), generate_traces(name, days=0.02, seed=5)
    other = generate_traces(name, days=0.02, seed=6)
    assert all((a.arrivals == b.arrivals).all() for a, b in zip(one, same, strict=True))
    assert any((a.arrivals != b.arrivals).any() for a, b in zip(one, other, strict=True))
    assert name in TRACES


@pytest.mark.parametrize(
    "given",
    [
        {"worker_rate": np.inf},
        {"worker_rate": 1e300},
        {"step_s": np.inf},
        {"retention_s": np.inf},
        {"retention_s": 0.0},
        {"retention_s": np.nan},
        {"arrivals": np.full((2, 2), 1 << 62)},
    ],
)
def test_a_trace_that_cannot_be_counted_is_refused(given: dict[str, Any]) -> None:
    """Offsets, steps and a worker's reads per step are 64-bit integers."""
    with pytest.raises(AssignorError, match="trace 'own'"):
        Trace(**{"name": "own", "step_s": 30.0, "arrivals": np.ones((2, 2), dtype=np.int64), **given})


def test_a_seed_below_0_is_refused() -> None:
    """As numpy would, but in a sentence."""
    with pytest.raises(AssignorError, match="seed=-1"):
        generate_traces("steady", days=0.1, seed=-1)


@pytest.mark.parametrize(
    ("name", "days"),
    [("no-such", 1.0), ("steady", 0.0), ("steady", -1.0), ("steady", np.inf), ("steady", np.nan), ("steady", 1e9)],
)
def test_traces_without_a_meaning_are_named(name: str, days: float) -> None:
    """Unknown names and empty lengths."""
    with pytest.raises(AssignorError, match="trace"):
        generate_traces(name, days=days)
