"""The progress log of a job: a line every ten seconds with rows, one when there are no more, and one at the end.

`Round` is the result of one round of a job.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

_EVERY_S = 10.0


class JobProgress:
    """Combines rounds into lines.

    Args:
        say: takes a line.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._since = clock()
        self._rows = self._total = 0
        self._quiet = False
        self._all_read = True
        self._late: tuple[float, str] = (0.0, "")

    def note(self, rows: int, late_s: Mapping[str, float], *, all_read: bool = True) -> None:
        """Add one round.

        Args:
            rows: number of written rows.
            late_s: age of the oldest unread record when its topic was claimed, by topic.
            all_read: whether the round claimed partitions and could read them all.
        """
        self._rows += rows
        self._total += rows
        self._all_read &= all_read
        self._late = max(self._late, *((seconds, topic) for topic, seconds in late_s.items()), (0.0, ""))
        passed = self._clock() - self._since
        if passed < _EVERY_S:
            return
        seconds, topic = self._late
        idle = not self._rows and not seconds
        if idle and self._all_read and not self._quiet:
            self._say("claims: no new records; the next line comes when there are some")
        self._quiet = idle and (self._all_read or self._quiet)
        if not idle:
            late = f", the oldest unread record was {seconds:.0f} s old ({topic})" if seconds else ""
            self._say(f"claims: {self._rows} rows written ({self._rows / passed:.0f}/s){late}")
        self._since, self._rows, self._late, self._all_read = self._clock(), 0, (0.0, ""), True

    def end(self) -> None:
        """Log the number of rows since the start."""
        self._say(f"claims: the job ends; it has written {self._total} rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The result of one round.

    Attributes:
        claimed: partitions.
        rows: records written to the table and its quarantine.
        quarantined: those of them that could not be decoded.
        lost: claims that were already lost.
        late_s: age of the oldest unread record when its topic was claimed, by topic.
        topics: the topics that exist; None while one of them could not be described.
        failed: whether the round as a whole failed: a server does not answer, or no topic can be read.
        problem: why it failed.
        refused: reason why a topic's records were not written, by topic; other topics of the round are not affected.
    """

    claimed: int = 0
    rows: int = 0
    quarantined: int = 0
    lost: int = 0
    late_s: Mapping[str, float] = field(default_factory=dict)
    topics: Collection[str] | None = None
    failed: bool = False
    problem: str = ""
    refused: Mapping[str, Exception] = field(default_factory=dict)
