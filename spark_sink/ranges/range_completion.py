"""Progress of one task through its ranges: decides when all records are read. Pure.

The last offset of a range may not exist: compaction, aborted transactions and control records leave gaps. A range is
complete when a record at or after its last offset has arrived, or when the broker reports that the log ends there or
later.
"""

from collections.abc import Iterable

from spark_sink.ranges.batch_offset import Range, TopicPartition


class TaskProgress:
    """The offsets that are still to be read."""

    def __init__(self, pieces: Iterable[Range]) -> None:
        self._left = {one.key: (one.begin, one.end) for one in pieces if one.records}

    def __bool__(self) -> bool:
        return bool(self._left)

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._left

    @property
    def offsets(self) -> int:
        """Number of offsets that are still to be read, gaps included."""
        return sum(end - begin for begin, end in self._left.values())

    @property
    def left(self) -> list[Range]:
        """The ranges that are still to be read."""
        return [Range(*key, begin, end) for key, (begin, end) in sorted(self._left.items())]

    def bounds(self, key: TopicPartition) -> tuple[int, int]:
        """Return the offsets `[begin, end)` of a partition that are still to be read, (0, 0) for none."""
        return self._left.get(key, (0, 0))

    def advance(self, key: TopicPartition, position: int) -> bool:
        """Record that all offsets below `position` have arrived; True if that completes the range."""
        begin, end = self._left.get(key, (0, 0))
        if end == 0:
            return False
        if position >= end:
            del self._left[key]
            return True
        self._left[key] = (max(begin, position), end)
        return False
