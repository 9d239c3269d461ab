"""Arrow batches to be written to tables, under the tables' labels of the topics."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.ranges.batch_offset import TopicPartition


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

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self._read)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._read.append(self._labelled(batch))

    def extend(self, other: "Batches") -> None:
        """Add the batches of another reader with the same labels."""
        self._read += other._read  # noqa: SLF001 -- of the same class

    def without(self, keys: Collection[TopicPartition]) -> "Batches":
        """Return the records of all other partitions."""
        if not keys:
            return self
        kept = Batches(self.labels, self.include_headers)
        kept._read = [_without(batch, keys) for batch in self._read]
        return kept

    def batch(self, only: set[str]) -> pa.RecordBatch:
        """Return the records of these labels, as one batch."""
        schema = arrow_schema(headers=self.include_headers)
        whole = pa.Table.from_batches(self._read, schema=schema).combine_chunks()
        if not only.issuperset(self.labels.values()):
            whole = whole.filter(pc.is_in(whole.column("topic"), pa.array(sorted(only), pa.string())))
        found = whole.combine_chunks().to_batches()
        return found[0] if found else pa.RecordBatch.from_pylist([], schema=schema)

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
