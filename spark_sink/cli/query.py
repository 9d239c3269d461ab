"""`azimuth query`: SQL over a table and the records of Kafka that it lacks."""

import contextlib
import itertools
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spark_sink.cli._long_steps import long_step
from spark_sink.cli._option_values import Brokers, Kafka, given, pairs, storage_pairs
from spark_sink.cli._output import console, table
from spark_sink.cli._tables import Storage

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

_SHOWN: Final = 40
_ANY_WIDTH: Final = 1_000_000


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("query", rich_help_panel="Look and check (changes nothing)")(query)


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", callback=given, help="One statement over the view `records`.")],
    table: Annotated[str, typer.Option(callback=given, help="Address of the table; {topic} as in agents.")],
    bootstrap_servers: Brokers,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A topic that may have no table yet; repeatable.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column of the view; all of the table's by default; repeatable."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Option of the agents that write the table, such as valueFormat=json."),
    ] = None,
    kafka: Kafka = None,
    storage: Storage = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every row as a line of JSON.")] = False,
) -> None:
    """Query a table up to now: its rows, and the records of Kafka that it lacks."""
    from spark_sink.cli._reachable import reach
    from spark_sink.source.union_read.table_query import query as run
    from spark_sink.source.union_read.union_reader import open_union

    properties = {"bootstrap.servers": bootstrap_servers, **pairs(kafka, "--kafka")}
    stored = storage_pairs(storage)
    options = {
        **pairs(option, "--option"),
        **{name if name.startswith("catalog.") else f"storage.{name}": text for name, text in stored.items()},
    }
    with contextlib.ExitStack() as opened:
        with long_step(f"looking at {table} and at Kafka") as say:
            reach(properties)
            found = open_union(table, properties, options=options, columns=column or None, topics=topic or ())
            say(f"reading {table} and at most {found.tail.unread.most_records:,} records that it lacks")
            rows = opened.enter_context(run(found, sql, lambda count: say(f"{count:,} rows read into DuckDB")))
        if as_json:
            for row in _rows(rows):
                typer.echo(_line(row))
            return
        _show(rows)


def _rows(reader: "pa.RecordBatchReader") -> "Iterator[dict[str, Any]]":
    for batch in reader:
        yield from batch.to_pylist()


def _show(reader: "pa.RecordBatchReader") -> None:
    """Print the first rows as a table, or one value a line if the table is too wide."""
    names = reader.schema.names
    rows = _rows(reader)
    first = [
        ["" if row[name] is None else str(_text(row[name])) for name in names] for row in itertools.islice(rows, _SHOWN)
    ]
    shown, out = table(*names, names=names), console()
    for cells in first:
        shown.add_row(*cells)
    needed = out.measure(shown, options=out.options.update(max_width=_ANY_WIDTH)).maximum
    if needed <= out.width or len(names) == 1 or not first:
        out.print(shown)
    else:
        for number, cells in enumerate(first, start=1):
            _show_by_line(out, number, names, cells)
    if more := sum(1 for _ in rows):
        typer.echo(f"and {more} rows more; --json prints all of them", err=True)


def _show_by_line(out: "Console", number: int, names: list[str], cells: list[str]) -> None:
    """Print a row whose columns do not fit side by side: in columns of some letters nothing could be read."""
    shown = table(f"row {number}", "", names=("",))
    for name, cell in zip(names, cells, strict=True):
        shown.add_row(name, cell)
    out.print(shown)


def _line(row: dict[str, Any]) -> str:
    """Return a row as JSON, which has no number for NaN and the infinities: they are text."""
    try:
        return json.dumps(row, default=_text, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(row), default=_text)


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: object) -> object:
    """Return a value that JSON can hold: bytes that are no UTF-8 get escapes; DuckDB's sum of integers is a decimal."""
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        return int(value)
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
