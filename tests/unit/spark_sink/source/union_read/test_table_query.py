"""What SQL over a union says if its rows cannot be read, or its columns not be told apart."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from spark_sink.errors import OptionError, TableError
from spark_sink.options.source_options import SourceOptions
from spark_sink.source.union_read.stored_tables import Rows, StoredTable
from spark_sink.source.union_read.table_query import query
from spark_sink.source.union_read.tail_rows import Tail
from spark_sink.source.union_read.union_reader import Union
from spark_sink.source.union_read.unread_ranges import Unread

NOTHING = Unread(ranges=[], identities={}, labels={})


def _union(schema: pa.Schema, rows: Rows) -> Union:
    """A union without records that its table lacks."""
    options = SourceOptions.parse({"kafka.bootstrap.servers": "localhost:9", "subscribe": "t"}, stream=False)
    return Union([StoredTable(name="t", schema=schema, rows=rows, positions={})], Tail(options, NOTHING), schema)


def test_an_error_of_the_rows_is_raised_as_it_is() -> None:
    """DuckDB has its own error for it, with the traceback as a part of a line."""

    def rows(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({columns[0]: [1]})
        raise TableError("t: a file is gone")

    with (
        pytest.raises(TableError, match=r"^t: a file is gone$"),
        query(_union(pa.schema({"x": pa.int64()}), rows), "FROM records"),
    ):
        pass


def test_names_that_differ_only_in_case_are_refused() -> None:
    """DuckDB takes them for one column, and gives the values of the first for both."""
    schema = pa.schema({"id": pa.int64(), "ID": pa.int64()})
    with (
        pytest.raises(OptionError, match="columns differ only in case, and DuckDB takes them for one: id, ID"),
        query(_union(schema, lambda columns: iter([pa.record_batch({one: [1] for one in columns})])), "FROM records"),
    ):
        pass


def test_each_of_several_tables_without_a_dataset_is_copied_once() -> None:
    """Iceberg's: a copy of all tables for each of them gave every row as often as there are tables."""
    schema = pa.schema({"x": pa.int64(), "y": pa.int64()})
    one, two = pa.record_batch({"x": [1, 2], "y": [5, 6]}), pa.record_batch({"x": [3]})
    tables = [
        StoredTable(
            name=name, schema=batch.schema, rows=lambda columns, own=batch: iter([own.select(columns)]), positions={}
        )
        for name, batch in (("one", one), ("two", two))
    ]
    union = replace(_union(schema, lambda _: iter(())), tables=tables)
    with query(union, "SELECT x, y FROM records ORDER BY x") as rows:
        assert rows.read_all().to_pylist() == [{"x": 1, "y": 5}, {"x": 2, "y": 6}, {"x": 3, "y": None}]


def test_columns_of_one_name_are_all_in_the_result() -> None:
    """A join has them: rows by names would keep the last one only, and print its values for the others, too."""
    found = _union(pa.schema({"x": pa.int64()}), lambda _: iter(()))
    with query(found, "SELECT 1 AS n, 2 AS n, 3 AS n_1, 4 AS n") as rows:
        assert rows.read_all().to_pylist() == [{"n": 1, "n_1": 2, "n_1_1": 3, "n_2": 4}]


def _fault(sql: str) -> str:
    schema = pa.schema({"offset": pa.int64(), "key": pa.string()})
    rows = pa.record_batch({"offset": [1], "key": ["a"]}, schema)
    with (
        pytest.raises(OptionError) as refused,
        query(_union(schema, lambda columns: iter([rows.select(columns)])), sql),
    ):
        pass
    return str(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT offset FROM records",
        "SELECT min(offset) FROM records",
        "SELECT key, offset, key FROM records",
        "SELECT * FROM records WHERE Offset > 3",
        "SELECT * FROM records\nORDER BY offset",
    ],
)
def test_an_unquoted_offset_is_refused_with_the_way_out(sql: str) -> None:
    """Every table has this column, and SQL has this word: DuckDB only names a place near it, or the word after it."""
    assert _fault(sql).endswith('; the column needs double quotes, "offset", because it is a word of SQL')


@pytest.mark.parametrize("name", ["flights", "recrods", "unread2"])
def test_a_table_of_another_name_is_refused_with_the_names_of_the_views(name: str) -> None:
    """DuckDB offers its own tables, such as sqlite_schema."""
    said = _fault(f"FROM {name}")
    assert said.endswith(f"Table with name {name} does not exist: the views are records and unread")


@pytest.mark.parametrize(
    "sql", ["selec", "SELECT nope FROM records", "SELECT key\nFROM records\nGROUP", "SELECT key::int FROM nothing"]
)
def test_no_sentence_repeats_the_query(sql: str) -> None:
    """In one line, the mark below DuckDB's copy of the query points nowhere."""
    said = _fault(sql)
    assert "LINE" not in said
    assert "^" not in said


def test_a_quoted_offset_and_the_word_of_sql_are_not_refused() -> None:
    """The sentence is for a query that DuckDB cannot read, and no more."""
    schema = pa.schema({"offset": pa.int64()})
    union = _union(schema, lambda columns: iter([pa.record_batch({one: [1, 2] for one in columns})]))
    with query(union, 'SELECT "offset" FROM records ORDER BY "offset" LIMIT 1 OFFSET 1') as rows:
        assert rows.read_all().to_pydict() == {"offset": [2]}
    assert "double quotes" not in _fault('SELECT nope FROM records WHERE "offset" > 1')
