"""Arrow batches to be written to tables, under the tables' labels of the topics."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.rows_by_topic import RowsByTopic


@dataclass(slots=True)
class Batches:
    """The records of a round.

    Attributes:
        labels: label of each topic in its table.
        include_headers: whether the batches have the column `headers`.
    """

    labels: Mapping[str, str]
    include_headers: bool = False
    _read: list[pa.RecordBatch] = field(default_factory=list)
    _by_topic: RowsByTopic | None = None

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self._read)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._read.append(self._labelled(batch))
        self._by_topic = None

    def extend(self, other: "Batches") -> None:
        """Add the batches of another reader with the same labels."""
        self._read += other._read  # noqa: SLF001 -- of the same class
        self._by_topic = None

    def without(self, keys: Collection[TopicPartition]) -> "Batches":
        """Return the records of all other partitions."""
        if not keys:
            return self
        kept = Batches(self.labels, self.include_headers)
        kept._read = [_without(batch, keys) for batch in self._read]
        return kept

    def rows(self, only: set[str]) -> pa.Table:
        """Return the records of these labels."""
        if self._by_topic is None:
            schema = arrow_schema(headers=self.include_headers)
            self._by_topic = RowsByTopic(pa.Table.from_batches(self._read, schema=schema))
        return self._by_topic.of(only)

    def _labelled(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        renamed = {name: label for name, label in self.labels.items() if name != label}
        if not renamed:
            return batch
        names = batch.column("topic")
        for name, label in renamed.items():
            names = pc.if_else(pc.equal(names, name), label, names)
        return batch.set_column(batch.schema.get_field_index("topic"), batch.schema.field("topic"), names)


def _without(batch: pa.RecordBatch, keys: Collection[TopicPartition]) -> pa.RecordBatch:
    unwanted = pa.array([False] * batch.num_rows)
    for key in keys:
        of_topic = pc.equal(batch.column("topic"), key.topic)
        unwanted = pc.or_(unwanted, pc.and_(of_topic, pc.equal(batch.column("partition"), key.partition)))
    return batch.filter(pc.invert(unwanted))
