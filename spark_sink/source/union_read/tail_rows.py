"""Records of Kafka as rows in the columns of their table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_sink.errors import OptionError, SchemaError
from spark_sink.fetch.range_reader import fetch
from spark_sink.formats import Decoder, decode_batch
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.json_evolution import value_columns
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.value_format import TABLE_SCHEMA, TOPIC
from spark_sink.sink.rows_by_topic import RowsByTopic
from spark_sink.source.source_decoder import make_decoder
from spark_sink.source.union_read.stored_tables import StoredTable
from spark_sink.source.union_read.unread_ranges import Unread

Transform = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True, slots=True)
class Tail:
    """The records that the tables lack.

    Attributes:
        options: how they are read and decoded.
        unread: where they are.
        transform: makes rows of the table from decoded records; None leaves them unchanged.
    """

    options: SourceOptions
    unread: Unread
    transform: Transform | None = None

    def rows(self, tables: Sequence[StoredTable], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read and decode the records; those that cannot be decoded are left out, as they are in the table.

        Args:
            tables: of the union; they have the columns of JSON values.
            schema: of the rows to return.

        Raises:
            DataLossError: records are gone, or a topic was recreated.
            FetchError: the brokers or the registry do not answer.
            OptionError: the columns of the values are not known.
            SchemaError: the rows lack a column of the table.
        """
        decoders = _Decoders(self.options, tables)
        unread = self.unread
        for records in fetch(unread.ranges, self.options.fetch, unread.identities, keep=False):
            by_topic = RowsByTopic(pa.Table.from_batches([records]))
            for topic in by_topic.topics:
                label = unread.labels.get(topic, topic)
                found = _labelled(_good(by_topic.of({topic}), decoders.of(topic, label)), label)
                if self.transform is not None:
                    found = self.transform(found)
                yield from fitted(found, schema).to_batches()


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows in the columns and types of a table; further columns are left out.

    Raises:
        SchemaError: a column is missing, or a value does not fit its type.
    """
    missing = [name for name in schema.names if name not in rows.column_names]
    if missing:
        raise SchemaError(
            f"the table has the column {missing[0]!r}, which its records do not give ({', '.join(rows.column_names)}): "
            "name the other columns with 'columns' (--column), give the option valueFormat of the query that wrote the "
            "table, or a 'transform' that computes it"
        )
    try:
        return rows.select(schema.names).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise SchemaError(f"the records do not fit the columns of the table: {error}") from error


class _Decoders:
    """The decoder of each topic, created at its first record."""

    def __init__(self, options: SourceOptions, tables: Sequence[StoredTable]) -> None:
        self._options = options
        self._tables = {key.topic: one for one in tables for key in one.positions}
        self._first = tables[0] if tables else None
        self._known: dict[str, Decoder | None] = {}

    def of(self, topic: str, label: str) -> Decoder | None:
        """Return the decoder of a topic, which has this name in the tables; None for the raw format."""
        if topic not in self._known:
            self._known[topic] = self._made(topic, label)
        return self._known[topic]

    def _made(self, topic: str, label: str) -> Decoder | None:
        value = self._options.value
        if value.subject is not None:
            value = replace(value, subject=value.subject.replace(TOPIC, topic))
        columns = None
        if value.name == "json" and value.schema in {None, TABLE_SCHEMA}:
            table = self._tables.get(label, self._first)
            columns = value_columns(table.schema) if table is not None else None
            if columns is None:
                raise OptionError(
                    f"{topic}: valueFormat=json takes its columns from the table, which has none of values yet: give "
                    "them with the option 'valueSchema'"
                )
        return make_decoder(replace(self._options, value=value), columns)


def _good(records: pa.Table, decoder: Decoder | None) -> pa.Table:
    if decoder is None:
        return records
    rows = pa.Table.from_batches([decode_batch(one, decoder) for one in records.to_batches()])
    return rows.filter(rows.column(COLUMN).is_null())


def _labelled(rows: pa.Table, label: str) -> pa.Table:
    """Return the rows of a topic with its name in the tables."""
    at = rows.schema.get_field_index("topic")
    return rows.set_column(at, "topic", pa.repeat(pa.scalar(label, pa.string()), rows.num_rows))
