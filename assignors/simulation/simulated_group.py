"""A simulated consumer group: workers, their partitions and their positions."""

import copy

import numpy as np

from assignors.planner.assign_partitions import plan
from assignors.planner.topics_and_members import Member, Topic
from assignors.scaling.observation import I64
from assignors.simulation.traces import Trace, log_starts


class SimulatedGroup:
    """Reads a trace step by step.

    Workers read in parallel. Each reads at most `worker_rate` records a second, shared max-min fair among its
    partitions, because a fetch takes about the same amount from each partition with a backlog. `assignors.plan` assigns
    the partitions and keeps current owners where it can. A change stops all reading for `rebalance_s`, as an eager
    rebalance does. Commits are visible immediately.
    """

    def __init__(self, trace: Trace, *, rebalance_s: float, workers: int) -> None:
        """Start at the beginning of the trace."""
        self.trace = trace
        self.partitions = trace.arrivals.shape[1]
        self.written: I64 = np.cumsum(trace.arrivals, axis=0, dtype=np.int64)
        self.starts = log_starts(self.written, trace)
        self.position: I64 = np.zeros(self.partitions, dtype=np.int64)
        self.moved = self.lost = self.count = 0
        self._rebalance_s = rebalance_s
        self._owned: dict[str, frozenset[tuple[str, int]]] = {}
        self._owner: I64 = np.zeros(self.partitions, dtype=np.int64)
        self._paused_s = 0.0
        self.resize(workers)
        self._paused_s = 0.0

    def copy(self) -> "SimulatedGroup":
        """Return a copy of the group with the same positions; the trace is shared."""
        return copy.copy(self)  # a shallow copy is enough: attributes are replaced, never changed in place

    def resize(self, workers: int) -> None:
        """Rebalance to this number of workers."""
        names = [f"worker-{n}" for n in range(workers)]
        generation = 1 if self._owned else -1
        members = [
            Member(name, frozenset({"t"}), owned=self._owned.get(name, frozenset()), generation=generation)
            for name in names
        ]
        made = plan([Topic("t", self.partitions)], members).partitions
        owner = self._owner.copy()
        for number, name in enumerate(names):
            for _, partition in made[name]:
                owner[partition] = number
        self.moved += int(np.count_nonzero(owner != self._owner)) if self._owned else 0
        self._owner, self.count = owner, workers
        self._owned = {name: frozenset(held) for name, held in made.items()}
        self._paused_s = self._rebalance_s

    def step(self, t: int) -> I64:
        """Read for one step of the trace, and return the positions after it, shape (P,)."""
        position, step = self.position, self.trace.step_s
        gone = self.starts[t] - position
        if gone.max() > 0:
            self.lost += int(gone[gone > 0].sum())
            position = np.maximum(position, self.starts[t])
        reading_s = max(step - self._paused_s, 0.0)
        self._paused_s = max(self._paused_s - step, 0.0)
        waiting = self.written[t] - position
        if self.trace.blocked is not None:
            waiting = np.where(self.trace.blocked[t], 0, waiting)
        self.position = position + self._read(waiting, self.trace.worker_rate * reading_s)
        return self.position

    def _read(self, waiting: I64, most: float) -> I64:
        loads = np.bincount(self._owner, weights=waiting, minlength=self.count)
        if loads.max() <= most:
            return waiting
        read = waiting.copy()
        for worker in np.flatnonzero(loads > most):
            held = np.flatnonzero(self._owner == worker)
            read[held] = np.minimum(waiting[held], _level(np.sort(waiting[held]), most))
        return read


def _level(waiting: I64, most: float) -> int:
    """Return the limit per partition with which all together give `most`; `waiting` is ascending and sums to more."""
    below = np.concatenate([[0], np.cumsum(waiting)[:-1]])
    shares = (most - below) / np.arange(len(waiting), 0, -1)
    return int(shares[np.argmax(shares <= waiting)])
