"""What a person who watches an agent sees of its reading: a line now and then, while there is something to tell."""

import logging
import time
from collections.abc import Callable

from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition

EVERY_S = 10.0

_log = logging.getLogger("azimuth.sink")


class ProgressLog:
    """Tells how far a query has come, at most every ten seconds, and only when it has come any further.

    Records are counted as offsets, from the last batch of each time: what lies between two of them is counted where the
    member held the partition all along, which the generation says. Beside a rebalance the count is therefore low.

    Args:
        table: where the records go.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, table: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._clock = clock
        self._told_at = clock()
        self._last: dict[TopicPartition, Range] = {}
        self._new = 0
        self.records = 0

    def look(self, last: Callable[[], Offset | None]) -> None:
        """Look at the query, if it is time to.

        Args:
            last: asks for the offset of the last batch that was written; None where there was none yet.
        """
        due = self._clock() - self._told_at >= EVERY_S
        if due or not self._last:  # the first batch is not missed: it may be the largest
            offset = last()
            if offset is not None:
                self.hear(offset)
        if due:
            self.tell()

    def hear(self, offset: Offset) -> None:
        """Hear of the last batch that was written."""
        self._new += sum(self._passed(one) for one in offset)
        self._last = dict(offset.ranges)

    def tell(self) -> None:
        """Say what was read since the last time, if anything was."""
        now = self._clock()
        if self._new:
            self.records += self._new
            _log.info(
                "%s: %s records of %s partitions (%s a second), %s so far",
                self._table,
                f"{self._new:,}",
                f"{len(self._last):,}",
                f"{self._new / max(now - self._told_at, 1e-3):,.0f}",
                f"{self.records:,}",
            )
        self._told_at, self._new = now, 0

    def _passed(self, one: Range) -> int:
        before = self._last.get(one.key)
        if before is None or before.generation != one.generation or before.end > one.end:
            return one.records
        return one.end - before.end
