"""Counts the commits and errors of one source for the ops log."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from spark_sink.fleet.decode_and_commit import LandedFiles
from spark_sink.lake.ops_log.ops_counts import OpsCounts, Written
from spark_sink.lake.table_contract import DataFile
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Outcome


@dataclass(frozen=True, slots=True)
class CommitCounts:
    """The counts of one source.

    Attributes:
        counts: of the process.
        source: name of the cluster in the fleet's file; None if there is only one.
    """

    counts: OpsCounts
    source: str | None = None

    def wrote(self, table: str, landed: LandedFiles, outcome: Outcome) -> None:
        """Count a commit by the rows that it took, not by those that were read: other agents may have written some.

        Args:
            table: address of the table.
            landed: the files that were written for the commit.
            outcome: what the commit took of them.
        """
        bad = outcome.quarantined.files if outcome.quarantined is not None else ()
        taken, quarantined = _rows([*outcome.files, *bad]), _rows(bad)
        read = _rows([*landed.good, *landed.bad])
        rows, bad_rows, sizes = Counter[str](), Counter[str](), Counter[str]()
        for key, count in taken.items():
            rows[key.topic] += count
            bad_rows[key.topic] += quarantined[key]
            # Of a partition that another agent has written in part, the size is that of its mean record.
            sizes[key.topic] += landed.record_bytes.get(key, 0) * count // max(read[key], 1)
        self.counts.wrote(
            self.source, table, {topic: Written(rows[topic], bad_rows[topic], sizes[topic]) for topic in rows}
        )

    def failed(self, topics: Collection[str], error: Exception | str) -> None:
        """Count a failed attempt to read or write these topics; all of the source without topics."""
        self.counts.failed(self.source, topics, error)


def _rows(files: Iterable[DataFile]) -> Counter[TopicPartition]:
    found = Counter[TopicPartition]()
    for file in files:
        for key, span in file.spans.items():
            found[key] += span.rows
    return found
