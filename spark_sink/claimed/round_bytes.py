"""Bounds the bytes of a round: by the sizes of records seen before, and by a stop while the round is read. Pure."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.ranges.batch_ends_within_limits import Limit
from spark_sink.ranges.batch_offset import Range, TopicPartition

_ASSUMED_BYTES = 1_000.0


class RoundBytes:
    """The records of a round in bytes; used by one thread.

    Offsets do not show the size of records. So a round is planned with the mean size that the last records of each
    topic had. If records are larger than that, reading stops when the limit is reached.

    Args:
        most: maximum number of bytes of a round, as Arrow columns; the batch that passes this size is the last one.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[str, float] = {}
        self._read = 0
        self._ends: dict[TopicPartition, int] = {}

    @property
    def reached(self) -> bool:
        """Whether the round has as many bytes as it may have."""
        return self._read >= self._most

    def limit(self, offsets: int, topics: Iterable[str]) -> Limit:
        """Return how far a round may read.

        Args:
            offsets: maximum number of offsets of the round.
            topics: the topics of the round; of an unknown topic records of 1 kB are expected.
        """
        sizes = {topic: self._sizes.get(topic, _ASSUMED_BYTES) for topic in topics}
        return Limit(offsets=offsets, bytes=self._most, sizes=sizes)

    def start(self) -> None:
        """Begin a round, or begin it again."""
        self._read, self._ends = 0, {}

    def count(self, batch: pa.RecordBatch) -> None:
        """Count a batch that was read."""
        if not batch.num_rows:
            return
        self._read += batch.nbytes
        values = pc.add(_lengths(batch.column("key")), _lengths(batch.column("value")))
        # Numbers, names and headers are counted as equal for all records of a batch.
        rest = (batch.nbytes - pc.sum(values).as_py()) / batch.num_rows
        columns = [batch.column("topic"), batch.column("partition"), batch.column("offset"), values]
        rows = pa.table(columns, names=["topic", "partition", "offset", "bytes"])
        found = rows.group_by(["topic", "partition"], use_threads=False).aggregate(
            [("offset", "max"), ("bytes", "sum"), ("bytes", "count")]
        )
        totals: dict[str, tuple[int, int]] = {}
        for one in found.to_pylist():
            key = TopicPartition(one["topic"], one["partition"])
            self._ends[key] = max(one["offset_max"] + 1, self._ends.get(key, 0))
            size, count = totals.get(key.topic, (0, 0))
            totals[key.topic] = size + one["bytes_sum"], count + one["bytes_count"]
        self._sizes |= {topic: rest + size / count for topic, (size, count) in totals.items()}

    def covered(self, ranges: Sequence[Range]) -> list[Range]:
        """Return what was read of these ranges: all, unless the limit was reached.

        Then each range ends after its last record that was read, because the records of a partition arrive in order.
        """
        if not self.reached:
            return list(ranges)
        return [one._replace(end=self._ends.get(one.key, one.begin)) for one in ranges]


def _lengths(column: pa.Array) -> pa.Array:
    return pc.fill_null(pc.cast(pc.binary_length(column), pa.int64()), 0)
