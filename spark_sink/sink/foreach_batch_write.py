"""Distinguishes a second write of a batch from a repetition of the first one. Pure.

`foreachBatch` may write a part of a batch, and then another part into the same table. After the first write the table's
positions are past the batch, so the second one would look like a replay, and its rows would be lost. So each write
leaves a number in the table, in the same commit as its rows. Spark calls the function once for a batch in each run of
the query: a number of the same run means a second write, and one of an earlier run that the batch is repeated.

A refused second write leaves the number of its batch. When a later run repeats this batch with other rows than those of
the first write, then the function was changed, to write all rows at once or the second part only. The rows of the
second write are still missing.
"""

import secrets
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assignors.hashing import hash64
from spark_sink.errors import TableError
from spark_sink.lake.table_contract import DataFile, Span
from spark_sink.ranges.batch_offset import TopicPartition

_CALL_BITS, _WRITE_BITS = 31, 32  # the log of a Delta table stores signed numbers of 64 bits
# After the name of the query: the part of its last write that moved positions, and the batch of a refused one.
_PART, _REFUSED = ".part", ".refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWrite:
    """One write of a batch, in one call of the function.

    Attributes:
        query: stands for the query's checkpoint, because the batches of each query have their own numbers.
        batch: Spark's number of the batch.
        call: stands for the run of the query and the batch.
        number: of this write; its high bits are the call.
    """

    query: str
    batch: int
    call: int
    number: int

    @classmethod
    def of(cls, checkpoint: str, batch: int, run: str) -> "BatchWrite":
        """Return a new write.

        Args:
            checkpoint: the query's checkpointLocation.
            batch: Spark's number of the batch.
            run: Spark's id of the query's run; empty if no task ran, because there were no rows.
        """
        call = _call(batch, run)
        number = call << _WRITE_BITS | secrets.randbits(_WRITE_BITS)
        return cls(query=f"{hash64(checkpoint):016x}", batch=batch, call=call, number=number)

    def noted(self, part: int | None) -> dict[str, int]:
        """Return the numbers that this write leaves in the table.

        Args:
            part: of `part_of`; None for a replay, because the first write has left its own.
        """
        return {self.query: self.number} | ({} if part is None else {f"{self.query}{_PART}": part})

    def refused(self) -> dict[str, int]:
        """Return the numbers that this write leaves in the table if it is refused."""
        return {f"{self.query}{_REFUSED}": self.batch}

    def is_second(self, known: Mapping[str, int], rows: int) -> bool:
        """Return whether this call of the function has written to the table before, and this write has rows.

        Args:
            known: the numbers that the writes of each query have left in the table.
            rows: number of rows of this write.
        """
        last = known.get(self.query, self.number)
        # A write without rows has no tasks that know the run. Its repetition has no rows either.
        before = last != self.number and last >> _WRITE_BITS in {self.call, _call(self.batch, "")}
        return before and rows > 0

    def second(self, table: str, rows: int) -> TableError:
        """Return the error for a second write into one table."""
        return TableError(
            f"{table}: this call of the function of foreachBatch has already written a part of batch {self.batch} "
            f"here, so these {rows} rows would look like a replay; they were not written. Write all rows of a "
            "table at once, for example with DataFrame.unionByName, or write to another table"
        )

    def refuse_rest(self, table: str, known: Mapping[str, int], part: int, rows: int) -> None:
        """Refuse a repeated batch if rows of it are missing, because they came in a second write.

        Args:
            table: its name.
            known: the numbers that the writes of each query have left in the table.
            part: of `part_of`, of this write; the table's positions are past all of its rows.
            rows: number of rows of this write.

        Raises:
            TableError: an earlier run has written other rows of this batch, and its second write was refused.
        """
        refused = known.get(f"{self.query}{_REFUSED}") == self.batch
        if refused and rows and known.get(f"{self.query}{_PART}", part) != part:
            raise TableError(
                f"{table}: an earlier run wrote another part of batch {self.batch} here than these {rows} rows, and "
                "its second write was refused; the table's positions are past all of them, so those that it lacks "
                "would be lost; nothing was written. RESTORE the version before that batch (roll an Iceberg table back "
                "to its snapshot), run `azimuth rewind --apply`, and start again; or leave these rows out with a new "
                "checkpoint"
            )


def part_of(files: Iterable[DataFile]) -> int:
    """Return a number that distinguishes these files' rows from other rows of the batch, in whatever files they are.

    Two parts have no row in common, so their first offsets differ, or their partitions.
    """
    found: dict[TopicPartition, Span] = {}
    for file in files:
        for key, span in file.spans.items():
            before = found.get(key, Span(span.first, span.last, 0))
            found[key] = Span(min(before.first, span.first), max(before.last, span.last), before.rows + span.rows)
    return hash64(repr(sorted((*key, span.first, span.last, span.rows) for key, span in found.items()))) >> 1


def run_of_write(runs: set[str], batch: int) -> str:
    """Return the run of the query from what its tasks say; empty if no task had rows.

    Raises:
        TableError: the tasks do not know it.
    """
    run = next(iter(runs), "")
    if len(runs) > 1 or (runs and not _is_run(run)):
        raise TableError(
            f"batch {batch}: the tasks of this write do not know the run of the query, so a second write would look "
            "like a replay; nothing was written. Write in the thread in which Spark calls the function, or in a "
            "pyspark.InheritableThread, and set no job group there; with Spark Connect use spark_sink.SparkLanding"
        )
    return run


def _is_run(text: str) -> bool:
    try:
        return bool(uuid.UUID(text))
    except ValueError:
        return False


def _call(batch: int, run: str) -> int:
    return hash64(f"{run}/{batch}") >> (64 - _CALL_BITS)
