"""Simulates a topic, its workers and a policy step by step, all partitions at once."""

from dataclasses import dataclass

import numpy as np

from assignors.scaling.observation import F64, I64, Window
from assignors.scaling.policy_contract import State
from assignors.scaling.workers_from_lag_policy import REBALANCE_S
from assignors.scaling.workers_of_topic import Decision, Scaler, decide
from assignors.simulation.simulated_group import SimulatedGroup
from assignors.simulation.traces import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How the simulated group behaves.

    Attributes:
        decide_s: time between two decisions.
        window_s: length of the window of observations that a decision sees.
        start_s: time from a decision to the rebalance that it causes.
        rebalance_s: time without a reader, at each change.
        workers: number at the beginning.
    """

    decide_s: float = 30.0
    window_s: float = 7200.0
    start_s: float = 30.0
    rebalance_s: float = REBALANCE_S
    workers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """The record of a simulation.

    Attributes:
        trace: the load.
        written: offset after the last record, shape (T, P).
        committed: the group's offset, shape (T, P).
        workers: shape (T,).
        moved: partitions that changed their worker although that worker stayed, or that moved to a new worker.
        lost: records that retention deleted unread.
        findings: first time of each finding, in seconds, and its sentence.
        decisions: the decisions that changed the number.
    """

    trace: Trace
    written: I64
    committed: I64
    workers: I64
    moved: int
    lost: int
    findings: dict[str, tuple[float, str]]
    decisions: list[Decision]


def simulate(trace: Trace, scaler: Scaler, world: World | None = None) -> Run:
    """Run a scaler on a trace; the group behaves as `SimulatedGroup` describes."""
    world = world or World()
    step, steps = trace.step_s, len(trace.arrivals)
    group = SimulatedGroup(trace, rebalance_s=world.rebalance_s, workers=world.workers)
    state = State(workers=world.workers)
    times: F64 = (np.arange(1, steps + 1) * step).astype(np.float64)
    committed = np.zeros_like(group.written)
    workers = np.zeros(steps, dtype=np.int64)
    back, every = max(round(world.window_s / step), 2), max(round(world.decide_s / step), 1)
    pending: tuple[float, int] | None = None
    found: dict[str, tuple[float, str]] = {}
    decisions: list[Decision] = []
    for t in range(steps):
        if pending is not None and times[t] - step >= pending[0] - 1e-6:
            group.resize(pending[1])
            pending = None
        committed[t], workers[t] = group.step(t), group.count
        if (t + 1) % every:
            continue
        view = slice(max(t + 1 - back, 0), t + 1)
        seen = Window(times_s=times[view], start=group.starts[view], end=group.written[view], committed=committed[view])
        decision = decide(scaler, seen, state, trace.topic)
        for name, sentence in decision.findings.items():
            found.setdefault(name, (float(times[t]), sentence))
        if decision.workers != state.workers:
            pending = (times[t] + world.start_s, decision.workers)
            decisions.append(decision)
        state = decision.state
    return Run(
        trace=trace,
        written=group.written,
        committed=committed,
        workers=workers,
        moved=group.moved,
        lost=group.lost,
        findings=found,
        decisions=decisions,
    )
