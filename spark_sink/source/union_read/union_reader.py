"""The union of tables and the records of Kafka that they lack, as one stream of Arrow batches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from spark_sink.errors import OptionError, SchemaError, TableError
from spark_sink.fetch.raw_columns import TIMESTAMP_TYPE, arrow_schema
from spark_sink.lake.table_addresses import storage_options
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.value_format import TOPIC
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.union_read.stored_tables import StoredTable, open_tables
from spark_sink.source.union_read.tail_rows import Tail, Transform, fitted
from spark_sink.source.union_read.unread_ranges import find_unread, topic_of


@dataclass(frozen=True, slots=True)
class Union:
    """What is read; `open_union` makes it.

    Attributes:
        tables: each at one version.
        tail: the records that they lack.
        schema: columns of the rows.
    """

    tables: Sequence[StoredTable]
    tail: Tail
    schema: pa.Schema

    def stored(self) -> Iterator[pa.RecordBatch]:
        """Read the rows of the tables."""
        for table in self.tables:
            columns = [name for name in self.schema.names if name in table.schema.names]
            for batch in table.rows(columns):
                yield from _with_missing(pa.Table.from_batches([batch]), self.schema).to_batches()

    def unread(self) -> Iterator[pa.RecordBatch]:
        """Read the records that the tables lack."""
        return self.tail.rows(self.tables, self.schema)


def union(  # noqa: PLR0913 -- each is a part of the question
    table: str,
    kafka: str | Mapping[str, str],
    *,
    options: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
    topics: Sequence[str] = (),
    transform: Transform | None = None,
) -> pa.RecordBatchReader:
    """Read a table up to its own positions, then Kafka from exactly these positions to the end.

    So each record that was acknowledged before the call is in the result once, whatever its agents do meanwhile. A
    record that cannot be decoded is left out, as it is in quarantine later.

    Args:
        table: as for the sink; `{topic}` in it names the table of each topic, and an Iceberg table is
            `catalog.namespace.table` with options of its catalog.
        kafka: brokers as host:port by commas, or client properties with Kafka's names.
        options: of the source and the sink, by their names: `valueFormat` and what belongs to it, `storage.*`,
            `catalog.*`, `failOnDataLoss`.
        columns: of the result; all columns of the tables by default.
        topics: topics that may have no table or no row yet; they are read from the beginning of their logs.
        transform: gets decoded records, and returns rows in the columns of the table, for a query that computes some.

    Returns:
        A stream that can be read once, rows of the tables first. Reading raises DataLossError if records are gone,
        FetchError if brokers do not answer, and TableError if a file cannot be read.

    Raises:
        DataLossError: a log ends before the table's position, or a topic was recreated.
        FetchError: the brokers do not answer.
        OptionError: an option is invalid, or nothing names a topic.
        SchemaError: the columns of the tables differ in their types, or one is missing.
        TableError: a table cannot be read, or two of them have the same records.
    """
    found = open_union(table, kafka, options=options, columns=columns, topics=topics, transform=transform)
    return pa.RecordBatchReader.from_batches(found.schema, _batches(found))


def open_union(  # noqa: PLR0913 -- as `union`
    table: str,
    kafka: str | Mapping[str, str],
    *,
    options: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
    topics: Sequence[str] = (),
    transform: Transform | None = None,
) -> Union:
    """Look at the tables, then at Kafka; arguments and errors as those of `union`."""
    given = dict(options or {})
    tables = open_tables(table, storage_options(given))
    _refuse_copies(tables)
    # A topic that went to another table has an older position in its former one.
    positions: dict[TopicPartition, int] = {}
    for key, at in (pair for one in tables for pair in one.positions.items()):
        positions[key] = max(at, positions.get(key, at))
    names = sorted({topic_of(key.topic) for key in positions} | set(topics))
    if not names:
        raise OptionError(f"{table}: no agent has written here, so no topic is known: name them with 'topics'")
    schema = _schema(tables)
    options_read = _source_options(kafka, names, given, schema)
    schema = _selected(schema if tables else _raw_columns(options_read, table), columns)
    identities = {topic: number for one in tables for topic, number in one.identities.items()}
    unread = find_unread(options_read, positions, identities)
    return Union(tables, Tail(options_read, unread, transform), schema)


def _refuse_copies(tables: Sequence[StoredTable]) -> None:
    """Refuse two tables with the same records, as a table and its copy: each record would be read twice.

    Raises:
        TableError: the offsets of two tables overlap.
    """
    spans: dict[TopicPartition, list[tuple[int, int, str]]] = {}
    for table in tables:
        for key, begin in table.beginnings.items():
            if begin < (end := table.positions.get(key, begin)):
                spans.setdefault(key, []).append((begin, end, table.name))
    for key, found in spans.items():
        for (_, end, name), (begin, _, other) in pairwise(sorted(found)):
            if begin < end:
                raise TableError(
                    f"{name} and {other} both have records of {key.topic}/{key.partition} from offset {begin} on, so "
                    "these would be read twice: is one a copy of the other? Name one of them, or move the copy"
                )


def _source_options(
    kafka: str | Mapping[str, str], topics: Sequence[str], given: Mapping[str, str], schema: pa.Schema
) -> SourceOptions:
    properties = {"bootstrap.servers": kafka} if isinstance(kafka, str) else kafka
    texts = {name.lower(): text for name, text in given.items()}
    if bounded := next((name for name in texts if name.startswith("ending")), None):
        raise OptionError(f"option {bounded!r} is for batch reads (spark.read); a union ends where the logs end")
    if "headers" in schema.names:
        texts.setdefault("includeheaders", "true")
    if TIMESTAMP_TYPE in schema.names and texts.get("valueformat", "raw").lower() == "raw":
        texts.setdefault("includetimestamptype", "true")
    if texts.get("valueformat", "").lower() in {"avro", "protobuf"} and len(topics) > 1:
        texts.setdefault("valuesubject", f"{TOPIC}-value")
    subscribed = {
        **texts,
        **{f"kafka.{name}": text for name, text in properties.items()},
        "subscribe": ",".join(topics),
    }
    return SourceOptions.parse(subscribed, stream=False)


def _schema(tables: Sequence[StoredTable]) -> pa.Schema:
    try:
        return pa.unify_schemas([one.schema for one in tables]) if tables else pa.schema([])
    except (pa.ArrowException, ValueError) as error:
        raise SchemaError(f"the tables have columns of the same name and different types: {error}") from error


def _raw_columns(options: SourceOptions, table: str) -> pa.Schema:
    if options.value.name != "raw":
        raise OptionError(f"{table}: there is no table yet, so its columns are not known")
    return arrow_schema(headers=options.headers, timestamp_type=options.timestamp_type)


def _selected(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema
    if not columns:
        raise SchemaError("'columns' names no column, so no row could be counted; leave it out for all of them")
    if unknown := [name for name in columns if name not in schema.names]:
        raise SchemaError(f"there is no column {unknown[0]!r}; known are {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in dict.fromkeys(columns)])


def _with_missing(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Add columns that only other tables of the union have."""
    for one in schema:
        if one.name not in rows.column_names:
            rows = rows.append_column(one, pa.nulls(rows.num_rows, one.type))
    return fitted(rows, schema)


def _batches(found: Union) -> Iterator[pa.RecordBatch]:
    yield from found.stored()
    yield from found.unread()
