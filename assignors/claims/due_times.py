"""Decides when a partition is due again: immediately, or when its historic volume makes a visit worthwhile. Pure.

Each visit sets a due time, and partitions are claimed by due time, the oldest first. A busy partition is due soon, a
quiet one late, at the latest after `longest_s`. A due time does not change until the next visit, so each partition
becomes the oldest at some time: no partition starves.
"""

import math
from dataclasses import dataclass

from assignors.claims import column_limits
from assignors.claims.claim_values import LONGEST_PAUSE_S, MS, Visit

_SHORTEST_S, _LONGEST_S = 1e-3, 1e9
_FAILED_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Picking:
    """The order in which partitions are claimed.

    Attributes:
        worth_records: a visit is worthwhile when this many records are expected. 0, the default: due immediately, so
            the order is that of the last claims.
        longest_s: a partition is due after at most this time, even if it never had records.
        half_life_s: after this time the weight of a volume is half.
    """

    worth_records: float = 0.0
    longest_s: float = 60.0
    half_life_s: float = 600.0

    def __post_init__(self) -> None:
        column_limits.real("worth_records", self.worth_records, 0, column_limits.MOST_64)
        column_limits.real("longest_s", self.longest_s, 0, LONGEST_PAUSE_S)
        column_limits.real("half_life_s", self.half_life_s, _SHORTEST_S, _LONGEST_S)

    def volume(self, before: float, visit: Visit, elapsed_s: float | None) -> float:
        """Smooth a volume over visits; each has the weight of the time that it covers.

        Args:
            before: records per second until now.
            visit: the result of the visit.
            elapsed_s: time that the visit covers; None if it is unknown, as at the first visit.

        Returns:
            Records per second, between `before` and the visit's own.
        """
        if visit.failed or not elapsed_s or elapsed_s < 0:
            return before
        if not before:  # the first known volume: a mean with 0 would take several half-lives to catch up
            return visit.records / elapsed_s
        kept = math.exp2(-elapsed_s / self.half_life_s)
        return kept * before + (1 - kept) * visit.records / elapsed_s

    def pause_s(self, volume: float, visit: Visit) -> float:
        """Return the time from the claim until the partition is due again.

        Args:
            volume: records per second.
            visit: the result of the visit; if it left records unread, the partition is due immediately, and if it
                failed, some seconds later.
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
