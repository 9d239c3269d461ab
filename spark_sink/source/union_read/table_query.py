"""SQL over a union, by DuckDB: filters and columns are pushed down to the files of Delta tables."""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_sink.errors import OptionError, SparkSinkError, TableError, plain
from spark_sink.source.union_read.union_reader import Union

if TYPE_CHECKING:
    import duckdb

VIEW = "records"
_UNREAD = "unread"
_STORED = "stored_"  # and the number of the table
_ROWS = 10_000  # of a batch of the result


@contextlib.contextmanager
def query(found: Union, sql: str) -> Iterator[pa.RecordBatchReader]:
    """Run a query over the view `records`.

    Records that the tables lack are copied into DuckDB first, which keeps more of them on disk than fit into memory; so
    are the rows of an Iceberg table. The view `unread` has only those that the tables lack.

    Args:
        found: the union.
        sql: one statement.

    Yields:
        The result.

    Raises:
        DataLossError, FetchError, SchemaError, TableError: as reading the union.
        OptionError: DuckDB is not installed, or refuses the query.
    """
    duckdb = _duckdb()
    failed: list[Exception] = []
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(":memory:") as connection:
        try:
            connection.execute(f"SET temp_directory = '{folder}'")
            names = [*_stored(connection, found, failed), _copied(connection, found, _UNREAD, found.unread(), failed)]
            connection.execute(_view(names, found.schema.names))
            answer = connection.sql(sql)
            if answer is None:
                raise OptionError("the statement gives no rows: only queries are supported, as in SELECT or FROM")
            yield _distinct(answer.to_arrow_reader(_ROWS))
        except duckdb.Error as error:
            if failed:  # DuckDB's own error has its text and a traceback as one line
                raise failed[0] from error
            raise _refused(plain(error), found) from error


def _refused(text: str, found: Union) -> SparkSinkError:
    """Return the error for what DuckDB says: of a table whose files cannot be read, or of the query."""
    _, failed, cause = text.partition(f"stream registered as '{_STORED}")
    if not failed:
        return OptionError(f"DuckDB refuses the query: {text}")
    number, _, cause = cause.partition("' failed: ")
    return TableError(f"{found.tables[int(number)].name}: the rows cannot be read: {cause.partition(' Detail: ')[0]}")


def _distinct(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Number the columns of one name, such as those of both sides of a join: a row by names would lose all but one."""
    names: list[str] = []
    for name in rows.schema.names:
        number = 0
        while (new := f"{name}_{number}" if number else name) in names:
            number += 1
        names.append(new)
    if names == rows.schema.names:
        return rows
    schema = pa.schema([one.with_name(name) for one, name in zip(rows.schema, names, strict=True)])
    return pa.RecordBatchReader.from_batches(schema, (one.rename_columns(names) for one in rows))


def _duckdb() -> ModuleType:
    try:
        import duckdb  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise OptionError(
            f"queries need a library that is not installed ({error}): pip install 'kafka-azimuth[query]'"
        ) from error
    return duckdb


def _view(tables: Sequence[str], columns: Sequence[str]) -> str:
    if len({name.lower() for name in columns}) < len(columns):
        raise OptionError(f"columns differ only in case, and DuckDB takes them for one: {', '.join(columns)}")
    quoted = ", ".join('"{}"'.format(name.replace('"', '""')) for name in columns)
    rows = " UNION ALL BY NAME ".join(f"FROM {name}" for name in tables)
    return f"CREATE VIEW {VIEW} AS SELECT {quoted} FROM ({rows})"  # noqa: S608 -- our names, and columns in quotes


def _stored(connection: "duckdb.DuckDBPyConnection", found: Union, failed: list[Exception]) -> Iterator[str]:
    for number, table in enumerate(found.tables):
        name = f"{_STORED}{number}"
        if table.dataset is None:
            yield _copied(connection, found, name, replace(found, tables=[table]).stored(), failed)
        else:
            connection.register(name, table.dataset())
            yield name


def _copied(
    connection: "duckdb.DuckDBPyConnection",
    found: Union,
    name: str,
    rows: Iterator[pa.RecordBatch],
    failed: list[Exception],
) -> str:
    read = pa.RecordBatchReader.from_batches(found.schema, _noted(rows, failed))
    connection.from_arrow(read).create(name)
    return name


def _noted(rows: Iterator[pa.RecordBatch], failed: list[Exception]) -> Iterator[pa.RecordBatch]:
    """Yield the batches; keep the error that ends them, which DuckDB would replace by its own."""
    try:
        yield from rows
    except Exception as error:
        failed.append(error)
        raise
