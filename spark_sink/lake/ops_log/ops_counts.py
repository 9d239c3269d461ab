"""What a process has done since the ops log was last written: batches, rows, bytes and errors, by topic."""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.ranges.batch_offset import TopicPartition

MOST_TOPICS: Final = 10_000
OTHERS: Final = "(other topics)"
_TEXT: Final = 500  # characters of an error


@dataclass(frozen=True, slots=True)
class Written:
    """The part of one commit that belongs to one topic.

    Attributes:
        rows: rows of the table and of its quarantine.
        quarantined: those of the quarantine.
        bytes: keys and values of their records.
    """

    rows: int
    quarantined: int
    bytes: int


@dataclass(slots=True)
class _Sum:
    table_uri: str | None = None
    batches: int = 0
    rows: int = 0
    quarantined: int = 0
    bytes: int = 0
    errors: int = 0
    last_error: str | None = None


@dataclass(slots=True)
class OpsCounts:
    """Counts by source and topic; safe for threads, and bounded: sums, no list of events.

    Args:
        mask: removes secrets from the text of an error.
        most: topics that are counted separately between two calls of `take`; later ones are counted together.
        clock: the time, in UTC.
    """

    mask: Callable[[str], str] = str
    most: int = MOST_TOPICS
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _sums: dict[tuple[str | None, str | None], _Sum] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _began_at: datetime | None = None

    def __post_init__(self) -> None:
        self._began_at = self.clock()

    def wrote(self, source: str | None, table: str, topics: Mapping[str, Written]) -> None:
        """Count a commit.

        Args:
            source: name of the cluster in the fleet's file; None if there is only one.
            table: address of the table.
            topics: by topic, as the table names it; topics without rows are not counted.
        """
        with self._lock:
            for topic, one in topics.items():
                if one.rows:
                    found = self._sum(source, topic, table)
                    found.batches += 1
                    found.rows += one.rows
                    found.quarantined += one.quarantined
                    found.bytes += one.bytes

    def failed(self, source: str | None, topics: Collection[str], error: Exception | str) -> None:
        """Count a failed attempt to read or write.

        Args:
            source: as in `wrote`.
            topics: the topics that were not written; none means all topics of the source.
            error: the reason.
        """
        text = self.mask(str(error))[:_TEXT]
        with self._lock:
            for topic in topics or (None,):
                found = self._sum(source, topic, None)
                found.errors += 1
                found.last_error = text

    def take(self) -> list[dict[str, Any]]:
        """Return the counts since the last call, as rows of the table without the agent's columns; begin at 0 again."""
        with self._lock:
            sums, self._sums = self._sums, {}
            began_at, ended_at = self._began_at, self.clock()
            self._began_at = ended_at
        shared = {"began_at": began_at, "ended_at": ended_at}
        return [{**shared, "source": source, "topic": topic, **asdict(one)} for (source, topic), one in sums.items()]

    def _sum(self, source: str | None, topic: str | None, table: str | None) -> _Sum:
        if (source, topic) not in self._sums and len(self._sums) >= self.most:
            source, topic, table = None, OTHERS, None
        found = self._sums.setdefault((source, topic), _Sum())
        found.table_uri = table or found.table_uri
        return found


def record_bytes(rows: pa.Table) -> dict[TopicPartition, int]:
    """Return the bytes of keys and values, uncompressed and without headers, by partition.

    Args:
        rows: records in the columns of the raw format.
    """
    sizes = pc.add(_lengths(rows.column("key")), _lengths(rows.column("value")))
    columns = [rows.column("topic"), rows.column("partition"), sizes]
    # Without threads: few groups, and the threads of Arrow's pool are for the files.
    found = (
        pa.table(columns, names=["topic", "partition", "bytes"])
        .group_by(["topic", "partition"], use_threads=False)
        .aggregate([("bytes", "sum")])
    )
    names = ("topic", "partition", "bytes_sum")
    return {
        TopicPartition(topic, number): size
        for topic, number, size in zip(*(found.column(name).to_pylist() for name in names), strict=True)
    }


def _lengths(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.cast(pc.binary_length(column), pa.int64()), 0)
