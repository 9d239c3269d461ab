"""When a partition is due again: at once, or when its historic volume makes a visit worthwhile. Pure.

Each visit fixes a due time, and partitions are claimed by due time, the oldest first. A busy partition is due soon, a
quiet one late, none later than `longest_s`; and because a due time once fixed stands still while the others move on,
each partition becomes the oldest: it ages instead of starving, whatever the others do.
"""

import math
from dataclasses import dataclass

from assignors.claims import column_limits
from assignors.claims.claim_values import LONGEST_PAUSE_S, MS, Visit

_SHORTEST_S, _LONGEST_S = 1e-3, 1e9
_FAILED_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Picking:
    """In which order partitions are claimed.

    Attributes:
        worth_records: a visit is worthwhile when so many records are expected. 0, the default: due at once, so the
            order is that of the last claim alone.
        longest_s: no partition waits longer than this to be due, even where nothing ever came.
        half_life_s: after this time a volume counts half.
    """

    worth_records: float = 0.0
    longest_s: float = 60.0
    half_life_s: float = 600.0

    def __post_init__(self) -> None:
        column_limits.real("worth_records", self.worth_records, 0, column_limits.MOST_64)
        column_limits.real("longest_s", self.longest_s, 0, LONGEST_PAUSE_S)
        column_limits.real("half_life_s", self.half_life_s, _SHORTEST_S, _LONGEST_S)

    def volume(self, before: float, visit: Visit, elapsed_s: float | None) -> float:
        """Smooth a volume over visits; each counts by the time that it covers.

        Args:
            before: records per second until now.
            visit: what was found.
            elapsed_s: what the visit covers; None where that is unknown, as at the first one.

        Returns:
            Records per second, between `before` and the visit's own.
        """
        if visit.failed or not elapsed_s or elapsed_s < 0:
            return before
        if not before:  # the first number known: a mean with the nothing before it would take half-lives to catch up
            return visit.records / elapsed_s
        kept = math.exp2(-elapsed_s / self.half_life_s)
        return kept * before + (1 - kept) * visit.records / elapsed_s

    def pause_s(self, volume: float, visit: Visit) -> float:
        """How long after the claim the partition is due again.

        Args:
            volume: records per second.
            visit: what was found; where it left records behind, the partition is due at once, and where it failed,
                some seconds later.
        """
        if visit.failed:
            return min(_FAILED_S, self.longest_s)
        if visit.more or not self.worth_records:
            return 0.0
        if volume * self.longest_s <= self.worth_records:
            return self.longest_s
        return self.worth_records / volume

    def pause_ms(self, volume: float, visit: Visit) -> int:
        """As `pause_s`, in the table's unit."""
        return round(self.pause_s(volume, visit) * MS)
