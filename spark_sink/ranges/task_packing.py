"""Packing: which ranges one Spark task reads. Pure; a task costs 35 to 50 core-ms, so there are as many as cores.

Spark's own connector makes a task of every partition: 300 tasks of ten records each cost 8 s on two cores. Here the
ranges are laid end to end and cut into equal lengths (McNaughton's wrap-around rule, 1959: no bin is longer than the
equal share and at most bins - 1 ranges are cut), except that no range is cut for a handful of records.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_sink.errors import OptionError
from spark_sink.ranges.batch_offset import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How ranges become tasks.

    Attributes:
        tasks: tasks of a batch that is worth sharing out; about one a core.
        min_tasks: tasks of every batch that has as many records (Spark's `minPartitions`).
        min_records: below this many records another task costs more than it saves.
        min_piece: a range is not cut where a piece would be shorter than this many records.
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
        """The number of tasks for this many records."""
        worthwhile = min(self.tasks, records // self.min_records)
        return min(max(worthwhile, self.min_tasks, 1), max(records, 1))


def pack(ranges: Iterable[Range], packing: Packing) -> list[list[Range]]:
    """Share out ranges over tasks.

    Args:
        ranges: what the batch reads; empty ranges are left out.
        packing: how many tasks, and what is too small to cut.

    Returns:
        The pieces of each task, no task empty. Together they are the ranges, each offset once; no task holds more
        than the equal share and 2 x `min_piece` records, and equal input gives equal output.
    """
    left = sorted(one for one in ranges if one.records)
    total = sum(one.records for one in left)
    bins = packing.bins(total)
    # Where more tasks are asked for than pieces of min_piece exist, the ask wins: that is what minPartitions is for.
    shortest = min(packing.min_piece, max(1, total // (2 * bins)))
    tasks: list[list[Range]] = [[]]
    laid = 0  # records laid out so far; the task that holds them ends at its share of the total
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
