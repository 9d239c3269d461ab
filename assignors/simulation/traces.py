"""Traces of records by partition and time; the standard ones are generated from a seed."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from assignors.errors import TraceError
from assignors.scaling.observation import F64, I64, Mask

DAY_S = 86_400.0
PARTITIONS = 32
RATE = 1000.0
"""Records per second that a worker reads in the standard traces."""
_NOISE = 0.05  # relative standard deviation of a topic's noise; its correlation time is about five minutes
_MOST = 1 << 60  # records: offsets and their sums fit into 64-bit integers
MOST_CELLS = 1 << 28  # steps x partitions that a simulation holds: 2 GB for each of its tables
MOST_STEPS = 1 << 21  # two years of half minutes: hours of computing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """The records written to one topic.

    Attributes:
        name: name of the trace.
        step_s: seconds between two rows.
        arrivals: records written in each step, shape (T, P).
        blocked: where nothing can be read, shape (T, P), because consumers are down or a record cannot be read; None if
            everything can be read.
        worker_rate: records per second that a worker reads.
        retention_s: age at which records are deleted; None for never.
        topic: name of the topic.
    """

    name: str
    step_s: float
    arrivals: I64
    blocked: Mask | None = None
    worker_rate: float = RATE
    retention_s: float | None = DAY_S
    topic: str = "topic"

    def __post_init__(self) -> None:
        if self.arrivals.ndim != 2 or 0 in self.arrivals.shape:  # noqa: PLR2004 -- time and partitions
            raise TraceError(f"trace {self.name!r}: arrivals of shape {self.arrivals.shape}, need time x partitions")
        if not (0 < self.step_s < math.inf and 0 < self.worker_rate * self.step_s < _MOST):
            raise TraceError(
                f"trace {self.name!r}: step_s={self.step_s!r}, worker_rate={self.worker_rate!r}, need more than 0 and "
                f"less than {_MOST:.0e} records a step"
            )
        if self.retention_s is not None and not 0 < self.retention_s < math.inf:
            raise TraceError(
                f"trace {self.name!r}: retention_s={self.retention_s!r}, need a number above 0, or None for never"
            )
        if (self.arrivals < 0).any():
            raise TraceError(f"trace {self.name!r}: a negative number of records")
        if self.arrivals.sum(dtype=np.float64) >= _MOST:
            raise TraceError(f"trace {self.name!r}: {_MOST:.0e} records or more, which no offset can count")

    @property
    def days(self) -> float:
        """Length of the trace in days."""
        return len(self.arrivals) * self.step_s / DAY_S


def log_starts(written: I64, trace: Trace) -> I64:
    """Return the first offset that retention keeps, shape (T, P)."""
    starts = np.zeros_like(written)
    if trace.retention_s is not None:
        kept = max(round(trace.retention_s / trace.step_s), 1)
        starts[kept:] = written[:-kept]
    return starts


def readable(trace: Trace) -> I64:
    """Return the positions of a group with one worker per partition, shape (T, P): no group can do better."""
    written = np.cumsum(trace.arrivals, axis=0, dtype=np.int64)
    starts = log_starts(written, trace)
    most = int(trace.worker_rate * trace.step_s)
    position = np.zeros(written.shape[1], dtype=np.int64)
    found = np.zeros_like(written)
    for t in range(len(written)):
        position = np.maximum(position, starts[t])
        reads = np.minimum(written[t] - position, most)
        if trace.blocked is not None:
            reads = np.where(trace.blocked[t], 0, reads)
        position = position + reads
        found[t] = position
    return found


def hot(trace: Trace, slo_s: float) -> Mask:
    """Mark where a partition gets more than one worker can read in time and most others do not, shape (T, P)."""
    late = max(round(slo_s / trace.step_s), 1)
    written = np.cumsum(trace.arrivals, axis=0, dtype=np.int64)
    behind = np.zeros_like(written, dtype=np.bool_)
    behind[late:] = readable(trace)[late:] < written[:-late]
    few = np.count_nonzero(behind, axis=1) * 2 < behind.shape[1]
    found: Mask = behind & few[:, None]
    return found


Generator = Callable[[int, float, np.random.Generator], list[Trace]]
"""Takes the number of steps, the seconds per step and the randomness; returns one trace per topic."""


def generate_traces(name: str, *, days: float = 7.0, step_s: float = 30.0, seed: int = 1) -> list[Trace]:
    """Generate one of the standard traces: one trace for each of its topics.

    Args:
        name: one of `TRACES`.
        days: length.
        step_s: duration of a step, seconds.
        seed: of the noise, 0 or more; equal seeds give equal traces.

    Raises:
        TraceError: no such trace, an invalid length, or a negative seed.
    """
    if name not in TRACES:
        raise TraceError(f"trace {name!r}: known are {', '.join(TRACES)}")
    length = days * DAY_S / step_s if days > 0 and step_s > 0 else 0.0
    if not 0.5 < length < MOST_STEPS:  # noqa: PLR2004 -- rounds to a step
        raise TraceError(
            f"trace {name!r}: days={days!r} in steps of step_s={step_s!r} s is not a valid length; "
            f"need 1 to {MOST_STEPS} steps"
        )
    if seed < 0:
        raise TraceError(f"trace {name!r}: seed={seed!r}, need 0 or more")
    steps = round(length)
    return TRACES[name](steps, step_s, np.random.default_rng(seed))


def _counts(rates: F64, shares: F64, step_s: float, rng: np.random.Generator) -> I64:
    """Return records by step and partition, with slow noise common to all and Poisson noise of each partition.

    Args:
        rates: records per second of the topic, shape (T,).
        shares: of the partitions, shape (P,), summing to 1, or (T, P).
        step_s: seconds per step.
        rng: randomness.
    """
    steps = len(rates)
    kept = float(np.exp(-step_s / 300.0))
    pushes = rng.normal(0.0, _NOISE * np.sqrt(1 - kept**2), steps)
    slow = np.empty(steps)
    level = 0.0
    for i, push in enumerate(pushes):
        level = level * kept + push
        slow[i] = level
    whole = np.maximum(rates * (1 + slow), 0.0) * step_s
    return rng.poisson(whole[:, None] * shares).astype(np.int64)


def _even(partitions: int = PARTITIONS) -> F64:
    return np.full(partitions, 1.0 / partitions)


def _day(steps: int, step_s: float) -> F64:
    return (np.arange(steps) * step_s / DAY_S).astype(np.float64)


def _steady(steps: int, step_s: float, rng: np.random.Generator) -> list[Trace]:
    counts = _counts(np.full(steps, 4600.0), _even(), step_s, rng)
    return [Trace(name="steady", step_s=step_s, arrivals=counts)]


def _diurnal(steps: int, step_s: float, rng: np.random.Generator) -> list[Trace]:
    """Daily cycle between 1,000 and 9,000 records a second, a third less at the weekend."""
    day = _day(steps, step_s)
    rates = 5000.0 - 4000.0 * np.cos(2 * np.pi * day)
    rates = rates * np.where(day % 7 >= 5, 0.67, 1.0)  # noqa: PLR2004 -- the sixth and the seventh day
    return [Trace(name="diurnal", step_s=step_s, arrivals=_counts(rates, _even(), step_s, rng))]


def _bursts(steps: int, step_s: float, rng: np.random.Generator) -> list[Trace]:
    """Bursts of three times the load for 10 to 20 minutes, four times a day on average, at random times."""
    rates = np.full(steps, 3000.0)
    for _ in range(rng.poisson(4 * steps * step_s / DAY_S)):
        begin, length = rng.integers(steps), round(rng.uniform(600, 1200) / step_s)
        rates[begin : begin + length] = 9000.0
    return [Trace(name="bursts", step_s=step_s, arrivals=_counts(rates, _even(), step_s, rng))]


def _ramp(steps: int, step_s: float, rng: np.random.Generator) -> list[Trace]:
    """Rise from 1,000 to 10,000 records a second over the first two thirds, then a constant load."""
    rates = 1000.0 + 9000.0 * np.minimum(np.arange(steps) / max(steps * 2 / 3, 1), 1.0)
    return [Trace(name="ramp", step_s=step_s, arrivals=_counts(rates, _even(), step_s, rng))]


def _hot(steps: int, step_s: float, rng: np.random.Generator) -> list[Trace]:
    """From the middle on, for a fourteenth of the time, one partition gets 1.4 times the rate of a worker."""
    counts = _counts(np.full(steps, 3000.0), _even(), step_s, rng)
    begin, length = steps // 2, max(steps // 14, 1)
    counts[begin : begin + length, 7] = rng.poisson(1.4 * RATE * step_s, min(length, steps - begin))
    return [Trace(name="hot", step_s=step_s, arrivals=counts)]


def _outage(steps: int, step_s: float, rng: np.random.Generator) -> list[Trace]:
    """Consumers are down for 20 minutes; later the source is down for an hour, and catches up in 20 minutes."""
    rates = np.full(steps, 4000.0)
    silent, late = round(3600 / step_s), round(1200 / step_s)
    at = round(0.6 * steps)
    rates[at : at + silent] = 0.0
    rates[at + silent : at + silent + late] *= 1 + 3600 / 1200
    blocked = np.zeros((steps, PARTITIONS), dtype=np.bool_)
    at = round(0.25 * steps)
    blocked[at : at + round(1200 / step_s)] = True
    return [Trace(name="outage", step_s=step_s, arrivals=_counts(rates, _even(), step_s, rng), blocked=blocked)]


def _random_walk(steps: int, step_s: float, rng: np.random.Generator) -> list[Trace]:
    """2 topics x 16 partitions; each partition's rate takes a step up or down every minute, between 0 and 600."""
    made = []
    for topic in ("walk-a", "walk-b"):
        every = max(round(60 / step_s), 1)
        moves = rng.choice((-8.0, 8.0), size=(steps // every + 1, 16))
        # Reflected at both ends: a walk that leaves 0..600 is folded back into it.
        walk = np.mod(rng.uniform(100, 500, 16) + np.cumsum(moves, axis=0), 1200.0)
        rates = np.repeat(np.where(walk > 600.0, 1200.0 - walk, walk), every, axis=0)[:steps]  # noqa: PLR2004 -- the bounds of the walk
        counts = rng.poisson(rates * step_s).astype(np.int64)
        made.append(Trace(name="random-walk", step_s=step_s, arrivals=counts, topic=topic))
    return made


def _published(steps: int, step_s: float, rng: np.random.Generator) -> list[Trace]:
    """A job reads 50,000 records an hour; the load rises from half of that rate to eight times that rate."""
    job = 50_000 / 3600
    rates = job * (0.5 + 7.5 * np.arange(steps) / steps)
    counts = _counts(rates, _even(16), step_s, rng)
    return [Trace(name="published", step_s=step_s, arrivals=counts, worker_rate=job)]


TRACES: Mapping[str, Generator] = {
    "steady": _steady,
    "diurnal": _diurnal,
    "bursts": _bursts,
    "ramp": _ramp,
    "hot": _hot,
    "outage": _outage,
    "random-walk": _random_walk,
    "published": _published,
}
STANDARD_TRACES = ("steady", "diurnal", "bursts", "ramp", "hot", "outage", "random-walk")
