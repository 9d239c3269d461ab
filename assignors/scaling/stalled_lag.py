"""Finds partitions whose lag no number of workers would change, before a policy decides.

They are classified, reported, and left out. A policy sees only the others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from assignors.scaling.lag import lag_records, lag_seconds, per_second
from assignors.scaling.observation import F64, I64, NEVER, UNKNOWN, Mask, Window

_NAMED = 3


class PartitionState(IntEnum):
    """The state of a partition.

    * FLOWING: it is read, or has no records to read. Its lag counts.
    * UNKNOWN: its end or its committed offset could not be read.
    * UNCOMMITTED: it has records, and the group has never committed: there is no sign of a consumer.
    * REWOUND: the committed offset went back, or is beyond the end: it was reset, or the topic was recreated.
      It counts again an hour after the jump (`rewound_s`), or when the window no longer contains the jump.
    * STALLED: it has unread records and its committed offset does not move while other partitions of the topic do: a
      record that cannot be read, or a lost owner.
    * STOPPED: as stalled, and no partition of the topic moves: no consumer reads.
    * HOT: its arrivals or its backlog are more than one worker can read, and a partition has only one reader.
    """

    FLOWING = 0
    UNKNOWN = 1
    UNCOMMITTED = 2
    REWOUND = 3
    STALLED = 4
    STOPPED = 5
    HOT = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """The thresholds for stalled, hot and rewound partitions.

    Attributes:
        stalled_s: time without a commit, with unread records, after which a partition has stopped; longer than the
            group's interval of commits and than a rebalance.
        hot_share: fraction of a worker's rate from which one partition's arrivals are too much for it.
        hot_s: a partition with more than half of all lag is also hot if one worker cannot read it in this time. The
            value is well above the objective: otherwise the cause may be an overloaded worker, and more workers help.
        hot_rate_s: time over which a hot partition's rate is measured.
        rate_s: time over which rates are measured.
        rewound_s: time for which a jump of the committed offset counts, if the window contains it.
    """

    stalled_s: float = 180.0
    hot_share: float = 0.98
    hot_s: float = 900.0
    hot_rate_s: float = 60.0
    rate_s: float = 180.0
    rewound_s: float = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """A topic for policies: the window, and the results of the gate.

    Attributes:
        window: all observations.
        states: shape (P,), values of `PartitionState`.
        lag: records to read, shape (P,), or `UNKNOWN`.
        lag_s: age of the oldest unread record, shape (P,).
        at_least: where the age may be larger, shape (P,).
        arriving: records per second written, shape (P,).
        leaving: records per second read, shape (P,).
        deadline_s: seconds until retention deletes the oldest unread record of a partition that is read; inf if
            records are not deleted by time.
        retention_s: time for which a record is kept; inf if records are not deleted by time.
        workers: current number of the topic.
        worker_rate: records per second that one worker reads; None while unknown.
    """

    window: Window
    states: I64
    lag: I64
    lag_s: F64
    at_least: Mask
    arriving: F64
    leaving: F64
    deadline_s: float
    retention_s: float
    workers: int
    worker_rate: float | None

    @property
    def flowing(self) -> Mask:
        """Partitions whose lag depends on the workers, shape (P,)."""
        return np.equal(self.states, PartitionState.FLOWING)

    @property
    def moving(self) -> Mask:
        """Partitions that need a reader, whatever their lag, shape (P,)."""
        return np.isin(self.states, (PartitionState.FLOWING, PartitionState.HOT))

    @property
    def never_committed(self) -> bool:
        """Whether there are records, and no partition of the topic has a commit of the group."""
        none = (self.window.committed[-1] < 0).all()
        return bool(none and (self.states == PartitionState.UNCOMMITTED).any())

    @property
    def lag_total(self) -> int:
        """Records to read in the partitions that count."""
        return int(self.lag[self.flowing].sum())

    @property
    def usable(self) -> int:
        """Number of partitions with records to read: more workers would be idle."""
        busy = self.moving & ((self.arriving > 0) | (self.lag > 0))
        return int(np.count_nonzero(busy))


def gate(
    seen: Window,
    *,
    workers: int,
    worker_rate: float | None = None,
    retention_s: float | None = None,
    settings: GateSettings | None = None,
) -> View:
    """Classify the partitions.

    Args:
        seen: the observations.
        workers: current number of the topic.
        worker_rate: records per second that one worker reads, if known.
        retention_s: the topic's retention.ms in seconds; None if it is unlimited or the topic is compacted.
        settings: see `GateSettings`.
    """
    settings = settings or GateSettings()
    lag = lag_records(seen.start[-1], seen.end[-1], seen.committed[-1])
    lag_s, at_least = lag_seconds(seen)
    arriving = per_second(seen.end, seen.times_s, settings.rate_s)
    states = _states(seen, lag, arriving, worker_rate, settings)
    flowing = (states == PartitionState.FLOWING) & (lag > 0)
    oldest = float(lag_s[flowing].max()) if flowing.any() else 0.0
    kept_s = math.inf if retention_s is None else retention_s
    return View(
        window=seen,
        states=states,
        lag=lag,
        lag_s=lag_s,
        at_least=at_least,
        arriving=arriving,
        leaving=per_second(seen.committed, seen.times_s, settings.rate_s),
        deadline_s=max(kept_s - oldest, 0.0),
        retention_s=kept_s,
        workers=workers,
        worker_rate=worker_rate,
    )


def findings(view: View, topic: str) -> dict[str, str]:
    """Return sentences about partitions that do not flow, by state; empty if all flow."""
    said = {}
    for state, text in _SENTENCES.items():
        found = np.flatnonzero(view.states == state)
        if len(found):
            named = ", ".join(map(str, found[:5])) + (" ..." if len(found) > 5 else "")  # noqa: PLR2004 -- a sentence
            said[state.name.lower()] = f"{topic}: {len(found)} of {len(view.states)} partitions ({named}) {text}"
    return said


def finding_of_many(state: str, topics: Sequence[str]) -> str:
    """Return the sentence of one finding that many topics share; `state` is a key of `findings`."""
    return (
        f"{len(topics)} topics ({abbreviated(topics)}) have partitions that {_SENTENCES[PartitionState[state.upper()]]}"
    )


def abbreviated(names: Sequence[str]) -> str:
    """Return some of the names, and the number of the others."""
    said, rest = ", ".join(names[:_NAMED]), len(names) - _NAMED
    return f"{said} and {rest} more" if rest > 0 else said


_SENTENCES: Mapping[PartitionState, str] = {
    PartitionState.UNKNOWN: "could not be read; their lag is unknown",
    PartitionState.UNCOMMITTED: "hold records, and the group has never committed there",
    PartitionState.REWOUND: "went back or are beyond the end of the log: offsets were reset or the topic was recreated",
    PartitionState.STALLED: "do not move while others do: look at the record at the committed offset",
    PartitionState.STOPPED: "do not move, nor does any other partition of the topic: no consumer reads",
    PartitionState.HOT: "bring more than one worker can read; no number of workers helps, more partitions do",
}

SHARED = frozenset(state.name.lower() for state in _SENTENCES)
"""Findings that one sentence can report for many topics."""


def _states(seen: Window, lag: I64, arriving: F64, worker_rate: float | None, settings: GateSettings) -> I64:
    committed = seen.committed
    states = np.zeros(seen.partitions, dtype=np.int64)
    still = _standing_still(seen, settings.stalled_s)
    begin = max(int(np.searchsorted(seen.times_s, seen.now_s - settings.stalled_s + 1e-6)) - 1, 0)
    stopped = not (committed[-1] > np.maximum(committed[begin], 0)).any()
    if worker_rate:
        most = settings.hot_share * worker_rate
        arriving = np.maximum(arriving, per_second(seen.end, seen.times_s, settings.hot_rate_s))
        holds_most = lag > 0.5 * np.maximum(lag, 0).sum()
        states[(arriving >= most) | (holds_most & (arriving + lag / settings.hot_s >= most))] = PartitionState.HOT
    states[still] = PartitionState.STOPPED if stopped else PartitionState.STALLED
    states[_rewound(seen, settings.rewound_s)] = PartitionState.REWOUND
    states[(committed[-1] == NEVER) & (lag > 0)] = PartitionState.UNCOMMITTED
    states[lag == UNKNOWN] = PartitionState.UNKNOWN
    return states


def _standing_still(seen: Window, stalled_s: float) -> Mask:
    """Mark partitions whose commit stayed at one unread record for the whole time; False if the window is too short."""
    begin = int(np.searchsorted(seen.times_s, seen.now_s - stalled_s + 1e-6)) - 1
    if begin < 0:
        return np.zeros(seen.partitions, dtype=np.bool_)
    committed, ends = seen.committed[begin:], seen.end[begin:]
    same = (committed == committed[0]).all(axis=0) & (committed[0] >= 0)
    still: Mask = same & (ends > committed).all(axis=0)
    return still


def _rewound(seen: Window, rewound_s: float) -> Mask:
    begin = int(np.searchsorted(seen.times_s, seen.now_s - rewound_s - 1e-6))
    committed, end = seen.committed[begin:], seen.end[-1]
    went_back = committed[-1] < committed.max(axis=0)
    beyond = (committed[-1] > end) & (end >= 0)
    found: Mask = (committed[-1] >= 0) & (went_back | beyond)
    return found
