"""SQL over a union, by DuckDB: filters and columns are pushed down to the files of Delta tables."""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_sink.errors import OptionError, SparkSinkError, TableError, plain
from spark_sink.lake.vacuumed_files import with_way_out
from spark_sink.source.union_read.union_reader import Union

if TYPE_CHECKING:
    import duckdb

VIEW = "records"
_UNREAD = "unread"
_STORED = "stored_"  # and the number of the table
_ROWS = 10_000  # of a batch of the result
_COPY_OF_QUERY = re.compile(r" LINE \d+: .* \^+$")  # after DuckDB's sentence, with a mark below
_BARE_OFFSET = re.compile(r'(?<!")\boffset\b(?!")', re.IGNORECASE)


@dataclass(slots=True)
class _Copies:
    """What is copied into DuckDB.

    Attributes:
        copied: gets the number of rows so far.
        rows: this number.
        failed: the error that ended a copy, which DuckDB replaces by its own.
    """

    copied: Callable[[int], None]
    rows: int = 0
    failed: list[Exception] = field(default_factory=list)

    def of(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        try:
            for batch in rows:
                self.rows += batch.num_rows
                self.copied(self.rows)
                yield batch
        except Exception as error:
            self.failed.append(error)
            raise


@contextlib.contextmanager
def query(found: Union, sql: str, copied: Callable[[int], None] = lambda _: None) -> Iterator[pa.RecordBatchReader]:
    """Run a query over the view `records`.

    Records that the tables lack are copied into DuckDB first, which keeps more of them on disk than fit into memory; so
    are the rows of an Iceberg table. The view `unread` has only those that the tables lack.

    Args:
        found: the union.
        sql: one statement.
        copied: gets the number of rows that were copied into DuckDB so far, after each batch.

    Yields:
        The result.

    Raises:
        DataLossError, FetchError, SchemaError, TableError: as reading the union.
        OptionError: DuckDB is not installed, or refuses the query.
    """
    duckdb = _duckdb()
    copies = _Copies(copied)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(":memory:") as connection:
        try:
            connection.execute(f"SET temp_directory = '{folder}'")
            names = [*_stored(connection, found, copies), _copied(connection, found, _UNREAD, found.unread(), copies)]
            connection.execute(_view(names, found.schema.names))
            answer = connection.sql(sql)
            if answer is None:
                raise OptionError("the statement gives no rows: only queries are supported, as in SELECT or FROM")
            rows = answer.to_arrow_reader(_ROWS)
        except duckdb.Error as error:
            if copies.failed:  # DuckDB's own error has its text and a traceback as one line
                raise copies.failed[0] from error
            raise _refused(plain(error), found, sql) from error
        yield _distinct(pa.RecordBatchReader.from_batches(rows.schema, _checked(rows, found, sql)))


def _checked(rows: pa.RecordBatchReader, found: Union, sql: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches of the result while DuckDB computes it; Arrow replaces DuckDB's errors by its own."""
    try:
        yield from rows
    except (OSError, pa.ArrowException) as error:
        refused = _refused(plain(error), found, sql)
        if isinstance(error, OSError) and isinstance(refused, OptionError):  # such as a full disk
            refused = TableError(f"the result cannot be read: {plain(error)}")
        raise refused from error


def _refused(text: str, found: Union, sql: str) -> SparkSinkError:
    """Return the error for what DuckDB says: of a table whose files cannot be read, or of the query."""
    _, failed, cause = text.partition(f"stream registered as '{_STORED}")
    if not failed:
        return OptionError(f"DuckDB refuses the query: {_query_fault(text, sql)}")
    number, _, cause = cause.partition("' failed: ")
    said = with_way_out(cause.partition(". Detail: ")[0])
    return TableError(f"{found.tables[int(number)].name}: the rows cannot be read: {said}")


def _query_fault(text: str, sql: str) -> str:
    """Return DuckDB's sentence with a way out, without its copy of the query: in one line the mark points nowhere."""
    said = _COPY_OF_QUERY.sub("", text)
    if said.startswith("Parser Error") and _BARE_OFFSET.search(sql):
        return f'{said}; the column needs double quotes, "offset", because it is a word of SQL'
    missing, found, _ = said.partition(" does not exist!")
    if found and missing.startswith("Catalog Error: Table"):
        return f"{missing} does not exist: the views are {VIEW} and {_UNREAD}"
    return said


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
        import duckdb
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


def _stored(connection: "duckdb.DuckDBPyConnection", found: Union, copies: _Copies) -> Iterator[str]:
    for number, table in enumerate(found.tables):
        name = f"{_STORED}{number}"
        if table.dataset is None:
            yield _copied(connection, found, name, replace(found, tables=[table]).stored(), copies)
        else:
            connection.register(name, table.dataset())
            yield name


def _copied(
    connection: "duckdb.DuckDBPyConnection",
    found: Union,
    name: str,
    rows: Iterator[pa.RecordBatch],
    copies: _Copies,
) -> str:
    read = pa.RecordBatchReader.from_batches(found.schema, copies.of(rows))
    connection.from_arrow(read).create(name)
    return name
