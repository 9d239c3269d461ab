"""Observations of a topic: offsets by partition and time. Unknown is a separate state, never 0 and never NaN."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

NEVER = -1
"""The group has no committed offset; the value of Kafka's protocol."""
UNKNOWN = -2
"""The offset could not be read: no leader, no coordinator, no answer in time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """Offsets of all partitions of one topic at one time.

    Attributes:
        time_s: time of the answers, seconds since 1970 by one clock.
        start: first kept offset, shape (P,); `UNKNOWN` if it could not be read.
        end: the offset after the last record, shape (P,), or `UNKNOWN`.
        committed: the group's next offset, shape (P,); `NEVER` if it has none, or `UNKNOWN`.
    """

    time_s: float
    start: I64
    end: I64
    committed: I64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """Observations of one topic, the oldest first.

    Attributes:
        times_s: shape (T,), ascending, T is 1 or more.
        start, end, committed: as in `Observation`, shape (T, P).
    """

    times_s: F64
    start: I64
    end: I64
    committed: I64

    @property
    def partitions(self) -> int:
        """Current number of partitions of the topic."""
        return int(self.end.shape[1])

    @property
    def now_s(self) -> float:
        """The time of the last observation."""
        return float(self.times_s[-1])

    def until(self, index: int) -> "Window":
        """Return the window up to one of the observations."""
        until = slice(0, index + 1)
        return Window(
            times_s=self.times_s[until],
            start=self.start[until],
            end=self.end[until],
            committed=self.committed[until],
        )


def window(observations: Sequence[Observation]) -> Window:
    """Combine observations into one window.

    If an observation is not later than the previous one (a clock that jumped back, a duplicate), all observations
    before it are left out, because no rate can be computed across such a jump. Partitions that were added later are
    `UNKNOWN` in earlier observations. A topic with fewer partitions than before is another topic: earlier observations
    are left out.

    Args:
        observations: one or more, in order.
    """
    kept: list[Observation] = []
    for one in observations:
        if kept and (one.time_s <= kept[-1].time_s or len(one.end) < len(kept[-1].end)):
            kept.clear()
        kept.append(one)
    count = len(kept[-1].end)
    return Window(
        times_s=np.array([one.time_s for one in kept]),
        start=np.stack([_widened(one.start, count) for one in kept]),
        end=np.stack([_widened(one.end, count) for one in kept]),
        committed=np.stack([_widened(one.committed, count) for one in kept]),
    )


def _widened(offsets: I64, count: int) -> I64:
    if len(offsets) == count:
        return offsets
    return np.concatenate([offsets, np.full(count - len(offsets), UNKNOWN, dtype=np.int64)])
