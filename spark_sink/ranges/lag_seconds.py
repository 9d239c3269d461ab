"""Lag in seconds: the age of the oldest unread record of each partition. Pure.

The position identifies that record. Ends of the log that were observed at several times show when it was written: the
time of an offset is interpolated between the two ends around it. This does not depend on the clocks of producers, and a
topic that is always a few records behind is as young as these records are.

Source: Burrow's table of ends; kafka-lag-exporter interpolates in the same way.
"""

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from spark_sink.ranges.batch_offset import TopicPartition

AtTimes = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]]
"""Asks the cluster for the first offset of each partition at or after a time in ms since 1970."""

_DATED_S = (1.0, 7 * 86_400.0)
"""A backlog from before the first look gets an age between these."""
_STEPS = 8
"""Each is one request to each broker, and halves the ratio of the bounds as a power: in the end it is 1.054."""
_MOST = 64
"""Marks of a partition. Above that every second one is dropped: what is old is known less exactly."""


class Mark(NamedTuple):
    """At this time the log ended before this offset."""

    at_s: float
    end: int


class UnreadAges:
    """The ages, from positions and ends at every look; used by one thread.

    A record from before the first look is at least as old as that look. `written` and `at_times` date it better.

    Args:
        at_times: asked once for each partition that is behind at its first look; None for none.
        clock: seconds of a monotonic clock.
        wall: seconds since 1970.
    """

    def __init__(
        self,
        at_times: AtTimes | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._at_times = at_times
        self._clock = clock
        self._wall = wall
        self._marks: dict[TopicPartition, list[Mark]] = {}

    def written(self, key: TopicPartition, offset: int, stamp_s: float) -> None:
        """Use the timestamp of a record; a timestamp that contradicts the observed ends is ignored.

        Args:
            key: the record's partition.
            offset: of the record.
            stamp_s: seconds since 1970.
        """
        age_s = self._wall() - stamp_s
        if age_s < 0:
            return
        marks, mark = self._marks.setdefault(key, []), Mark(self._clock() - age_s, offset)
        place = bisect_right(marks, offset, key=lambda one: one.end)
        after = place == 0 or marks[place - 1].at_s <= mark.at_s
        before = place == len(marks) or mark.at_s <= marks[place].at_s
        if after and before:
            marks.insert(place, mark)

    def look(self, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> dict[str, float]:
        """Take up the ends as they are now.

        Args:
            positions: the next offset to read, by partition; asked for before the ends.
            ends: the offset after the last record; partitions without one are left out.

        Returns:
            Seconds by topic, 0 where nothing is unread: the age of its oldest unread record.
        """
        late = {key: at for key, at in positions.items() if key not in self._marks and at < ends.get(key, at)}
        if late and self._at_times is not None:
            self._date(late, ends, self._at_times)
        found: dict[str, float] = {}
        for key, at in positions.items():
            if key in ends:
                found[key.topic] = max(found.get(key.topic, 0.0), self._age(key, at, ends[key]))
        return found

    def keep(self, keys: Iterable[TopicPartition]) -> None:
        """Forget all other partitions."""
        kept = set(keys)
        self._marks = {key: marks for key, marks in self._marks.items() if key in kept}

    def _date(self, late: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], at_times: AtTimes) -> None:
        """Bisect the age of each oldest unread record, and take up the nearest marks on both sides.

        A few fixed ages are not enough: after a silence the record of a moment ago would be as old as the nearest one.
        """
        wall_s, bounds = self._wall(), dict.fromkeys(late, _DATED_S)
        older: dict[TopicPartition, Mark] = {}
        younger: dict[TopicPartition, Mark] = {}
        for _ in range(_STEPS):
            ages = {key: math.sqrt(least * most) for key, (least, most) in bounds.items()}
            asked = {key: round((wall_s - age_s) * 1000) for key, age_s in ages.items()}
            for key, offset in at_times(asked).items():
                mark = Mark(wall_s - ages[key], ends[key] if offset is None else offset)
                least, most = bounds[key]
                if mark.end <= late[key]:
                    older[key], bounds[key] = mark, (least, ages[key])
                else:
                    younger[key], bounds[key] = mark, (ages[key], most)
        for marks in (older, younger):
            for key, mark in marks.items():
                self.written(key, mark.end, mark.at_s)

    def _age(self, key: TopicPartition, at: int, end: int) -> float:
        now = self._clock()
        self._marks[key] = marks = _observed(self._marks.get(key, []), Mark(now, end))
        newer = bisect_right(marks, at, key=lambda one: one.end)
        if newer == len(marks):
            del marks[:-1]
            return 0.0
        del marks[: max(0, newer - 1)]
        if marks[0].end > at:
            return now - marks[0].at_s
        low, high = marks[0], marks[1]
        return now - low.at_s - (high.at_s - low.at_s) * (at - low.end) / (high.end - low.end)


def _observed(marks: list[Mark], new: Mark) -> list[Mark]:
    """Append an observation; an end that goes back is another log."""
    if marks and new.end < marks[-1].end:
        return [new]
    if len(marks) > 1 and marks[-2].end == new.end:
        del marks[-1]  # of a log that stands still the first and the last time are enough
    marks.append(new)
    if len(marks) > _MOST:
        del marks[1:-1:2]
    return marks
