"""Packs the ranges of a batch into Spark tasks. Pure.

A task costs 35 to 50 core-ms, so there are as many tasks as cores. Spark's own connector runs one task per partition:
300 tasks of ten records each cost 8 s on two cores. Here the ranges are laid end to end and cut into equal lengths
(McNaughton's wrap-around rule, 1959: no bin is longer than the equal share and at most bins - 1 ranges are cut). As an
exception, no range is cut for a handful of records.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_sink.errors import OptionError
from spark_sink.ranges.batch_offset import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """Settings of the packing.

    Attributes:
        tasks: number of tasks of a batch that is large enough to be split; about one per core.
        min_tasks: number of tasks of every batch with at least as many records (Spark's `minPartitions`).
        min_records: below this number of records another task costs more than it saves.
        min_piece: a range is not cut if a piece would have fewer records.
    """

    tasks: int = 1
    min_tasks: int = 1
    min_records: int = 2_000
    min_piece: int = 500

    def __post_init__(self) -> None:
        for name in ("tasks", "min_tasks", "min_records", "min_piece"):
            if getattr(self, name) < 1:
                raise OptionError(f"packing: {name}={getattr(self, name)}, need 1 or more")

    def bins(self, records: int) -> int:
        """Return the number of tasks for this number of records."""
        worthwhile = min(self.tasks, records // self.min_records)
        return min(max(worthwhile, self.min_tasks, 1), max(records, 1))


def pack(ranges: Iterable[Range], packing: Packing) -> list[list[Range]]:
    """Divide ranges among tasks.

    Args:
        ranges: the ranges of the batch; empty ranges are left out.
        packing: number of tasks and smallest piece.

    Returns:
        The pieces of each task; no task is empty. Together they cover the ranges, each offset once. No task has more
        than the equal share plus 2 x `min_piece` records. Equal input gives equal output.
    """
    left = sorted(one for one in ranges if one.records)
    total = sum(one.records for one in left)
    bins = packing.bins(total)
    # The requested number of tasks overrides min_piece, because that is the purpose of minPartitions.
    shortest = min(packing.min_piece, max(1, total // (2 * bins)))
    tasks: list[list[Range]] = [[]]
    laid = 0  # records laid out so far; their task ends at its share of the total
    for one in left:
        rest = one
        while rest.records:
            room = total * len(tasks) // bins - laid
            if room < shortest and tasks[-1] and len(tasks) < bins:
                tasks.append([])
                continue
            cut = rest.begin + room
            last = len(tasks) == bins
            if last or rest.end - cut < shortest or room < shortest:
                cut = rest.end
            tasks[-1].append(rest._replace(end=cut))
            laid += cut - rest.begin
            rest = rest._replace(begin=cut)
    return [task for task in tasks if task]
