"""Known failures of scaling on lag, on ours and on the rules they are known from; and what a decision costs."""

import statistics
import time
from typing import Any

import numpy as np
import pytest

from assignors.scaling import NEVER, Bounds, Capacity, Keda, Policy, Scaler, State, UsablePartitions, Window, decide
from tests.benchmarks.scaling_report import save

pytestmark = pytest.mark.benchmark
RATE = 1000.0
SCALERS: dict[str, Policy] = {"capacity": Capacity(), "keda": Keda(reset_earliest=True)}


def topic(arriving: list[float], leaving: list[float], lag: list[float], *, never: bool = False) -> Window:
    """An hour of constant rates, every 30 s."""
    times = np.array([1e6 + 30.0 * n for n in range(120)])
    back = (times - times[-1])[:, None]
    end = 1e9 + back * np.array(arriving)
    committed = np.minimum(1e9 - np.array(lag) + back * np.array(leaving), end)
    return Window(
        times_s=times,
        start=np.full(end.shape, 10**9 - 10**7, dtype=np.int64),
        end=end.astype(np.int64),
        committed=np.full(end.shape, NEVER) if never else committed.astype(np.int64),
    )


def settled(policy: Policy, seen: Window, workers: int, most: int) -> dict[str, Any]:
    """Where five decisions on the same window lead, and what is reported."""
    scaler = Scaler(policy=policy, limits=(UsablePartitions(), Bounds(most=most)), worker_rate=RATE)
    if policy.name == "keda":
        scaler = Scaler(policy=policy, limits=(Bounds(most=most),), worker_rate=RATE)
    state, reported = State(workers=workers), set[str]()
    for _ in range(5):
        decision = decide(scaler, seen, state)
        state, reported = decision.state, reported | decision.findings.keys()
    return {"from": workers, "to": state.workers, "reported": sorted(reported)}


def test_known_failures() -> None:
    """Sticking below the cap, old data of a group that never committed, a poison partition, a hot one."""
    cases: dict[str, tuple[Window, int, int, int | None]] = {
        "63 of 64 with all behind": (topic([900.0] * 64, [850.0] * 64, [400_000.0] * 64), 63, 64, 64),
        "22 of 24 with all behind": (topic([900.0] * 24, [850.0] * 24, [400_000.0] * 24), 22, 24, 24),
        "never committed, old data": (topic([10.0] * 16, [10.0] * 16, [0.0] * 16, never=True), 1, 16, 1),
        "poison partition": (topic([50.0] * 8, [50.0] * 7 + [0.0], [0.0] * 7 + [900_000.0]), 1, 8, 1),
        "hot partition": (topic([1400.0] + [90.0] * 31, [700.0] + [90.0] * 31, [2e6] + [0.0] * 31), 4, 32, None),
    }
    figures = {}
    for name, (seen, workers, most, wanted) in cases.items():
        found = {who: settled(policy, seen, workers, most) for who, policy in SCALERS.items()}
        ours = found["capacity"]["to"]
        figures[name] = {**found, "holds": ours == wanted if wanted is not None else ours <= workers}
    save("known failures", figures)
    assert all(case["holds"] for case in figures.values())


def test_the_time_of_a_decision() -> None:
    """Milliseconds, median of 50, by partitions of the topic; an hour of observations."""
    figures = {}
    for partitions in (3, 32, 300, 1000):
        seen = topic([50.0] * partitions, [50.0] * partitions, [100.0] * partitions)
        scaler = Scaler(policy=Capacity(), limits=(UsablePartitions(), Bounds()), worker_rate=RATE)
        times = []
        for _ in range(50):
            began = time.perf_counter()
            decide(scaler, seen, State(workers=3))
            times.append(1000 * (time.perf_counter() - began))
        figures[str(partitions)] = statistics.median(times)
    save("milliseconds of a decision", figures)
