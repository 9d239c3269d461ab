"""A partition too hot for one worker adds no workers, unless retention would delete its unread records."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.scaling import State, decide
from assignors.scaling.pipelines import Pipeline
from assignors.scaling.retention import rescue
from assignors.scaling.stalled_lag import gate
from assignors.simulation.policy_comparison import scaler_for
from assignors.simulation.simulator import simulate
from assignors.simulation.traces import generate_traces
from tests.unit.assignors.scaling.conftest import MakeWindow, window

RATE = 1000.0
DAY_S = 86_400.0


def test_retention_deletes_nothing_of_a_hot_partition() -> None:
    """Hot for 51 minutes with a retention of two hours: its reader gives up other partitions before that is too late.

    With the workers that all other partitions need, its backlog would take longer to read than it is kept.
    """
    (trace,) = generate_traces("hot", days=0.5)
    short = replace(trace, retention_s=7200.0)
    run = simulate(short, scaler_for("capacity", short, Pipeline()))
    assert run.lost == 0
    assert run.workers.max() < trace.arrivals.shape[1]
    kept = simulate(short, scaler_for("ds2", short, Pipeline()))
    assert kept.lost > 0


@pytest.mark.parametrize(("retention_s", "wanted"), [(None, 0), (30 * DAY_S, 1), (DAY_S, 7), (3600.0, 32)])
def test_the_shorter_the_retention_the_more_workers(steady: MakeWindow, retention_s: float | None, wanted: int) -> None:
    """32 million records wait: for ever, 25 a second suffice; within half a day 741, beside 4 others."""
    seen = steady([1400] + [60] * 31, [700] + [60] * 31, [32_000_000] + [0] * 31)
    view = gate(seen, workers=1, worker_rate=RATE, retention_s=retention_s)
    assert rescue(view, RATE, 0.5) == wanted


def test_the_reason_names_what_waits_and_what_else_would_do(steady: MakeWindow) -> None:
    """The reason explains the additional workers."""
    seen = steady([1400] + [60] * 31, [700] + [60] * 31, [32_000_000] + [0] * 31)
    scaler = Pipeline(worker_rate=RATE).scaler(DAY_S)
    made = decide(scaler, seen, State(workers=3), "t")
    assert made.workers == 7
    assert "32000000 records wait in a partition too hot for one worker" in made.reason
    assert "hot" in made.findings


@given(lag=st.integers(0, 10**8), more=st.integers(0, 10**8), workers=st.integers(1, 16), others=st.integers(1, 80))
def test_more_backlog_never_asks_for_fewer_workers(lag: int, more: int, workers: int, others: int) -> None:
    """The number leaves enough capacity for the hot partition, or is one worker per partition."""

    def asked(waiting: int) -> int:
        seen = window([1400] + [others] * 15, [700] + [others] * 15, [waiting] + [0] * 15)
        return rescue(gate(seen, workers=workers, worker_rate=RATE, retention_s=DAY_S), RATE, 0.5)

    number = asked(lag)
    assert asked(lag + more) >= number
    held = int(np.ceil(16 / max(number, 1)))
    left = max(RATE - (held - 1) * others, RATE / held)
    assert number == 16 or left >= lag / (0.5 * DAY_S)
