"""How many partitions a job takes: by the published numbers of workers, and by what it reads in a round. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assignors.claims import Claim

_SMOOTHING: Final = 0.3


@dataclass(slots=True, kw_only=True)
class RoundSize:
    """The number of partitions of a round, by the measured rate of the job.

    A round should take `target_s`: in a longer one other jobs wait for partitions that this job cannot read yet.

    Attributes:
        most: maximum number of partitions of a round.
        target_s: time of a round, seconds, above 0.
    """

    most: int
    target_s: float
    _each_s: float | None = None

    def note(self, partitions: int, seconds: float) -> None:
        """Take the time that a round with this number of partitions has taken."""
        if partitions < 1 or seconds <= 0:
            return
        each = seconds / partitions
        self._each_s = each if self._each_s is None else (1 - _SMOOTHING) * self._each_s + _SMOOTHING * each

    @property
    def partitions(self) -> int:
        """Partitions of the next round, 1 to `most`."""
        if not self._each_s:
            return self.most
        return max(1, min(self.most, int(self.target_s / self._each_s)))


def surplus(
    claims: Sequence[Claim],
    workers: Mapping[str, int],
    partitions: Mapping[str, int],
    visited: Mapping[tuple[str, int], float],
) -> set[Claim]:
    """Return the claims beyond the job's share of their topics: those that it has visited last.

    A topic with P partitions and k workers has k jobs, so the share of each is P / k, rounded up.

    Args:
        claims: of one round.
        workers: published number by topic; topics without a number have no limit.
        partitions: number of partitions by topic.
        visited: when this job has last visited a partition. The time of the last claim does not show that: a surplus
            claim is not a visit, and otherwise the same partition would be surplus in every round.
    """
    taken: Counter[str] = Counter()
    over: set[Claim] = set()
    for one in sorted(claims, key=lambda one: (visited.get((one.topic, one.partition), 0.0), one.topic, one.partition)):
        number = workers.get(one.topic)
        if number is None:
            continue
        if taken[one.topic] >= -(-partitions.get(one.topic, 1) // number):
            over.add(one)
        taken[one.topic] += 1
    return over
