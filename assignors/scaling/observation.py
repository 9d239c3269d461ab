"""What was seen of a topic: offsets by partition and time. Unknown is a state of its own, never 0 and never NaN."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

NEVER = -1
"""A committed offset where the group has none, as Kafka's protocol writes it."""
UNKNOWN = -2
"""An offset that could not be asked for: no leader, no coordinator, no answer in time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """Offsets of all partitions of one topic at one time.

    Attributes:
        time_s: when the answers came, seconds since 1970 by one clock.
        start: first offset that is still kept, shape (P,); `UNKNOWN` where it could not be asked for.
        end: the offset after the last record, shape (P,), or `UNKNOWN`.
        committed: the group's next offset, shape (P,); `NEVER` where it has none, or `UNKNOWN`.
    """

    time_s: float
    start: I64
    end: I64
    committed: I64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """Observations of one topic, the oldest first.

    Attributes:
        times_s: shape (T,), rising, T is 1 or more.
        start, end, committed: as in `Observation`, shape (T, P).
    """

    times_s: F64
    start: I64
    end: I64
    committed: I64

    @property
    def partitions(self) -> int:
        """How many partitions the topic has now."""
        return int(self.end.shape[1])

    @property
    def now_s(self) -> float:
        """The time of the last observation."""
        return float(self.times_s[-1])

    def until(self, index: int) -> "Window":
        """What was known at one of the observations."""
        until = slice(0, index + 1)
        return Window(
            times_s=self.times_s[until],
            start=self.start[until],
            end=self.end[until],
            committed=self.committed[until],
        )


def window(observations: Sequence[Observation]) -> Window:
    """Put observations into one window.

    Observations that are not later than the one before (a clock that jumped back, a doubled delivery) are left out
    together with all before them: no rate can be read across such a jump. Partitions that were added since are
    `UNKNOWN` before. A topic with fewer partitions than before is another topic: what was before is left out.

    Args:
        observations: one or more, in the order in which they were made.
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
