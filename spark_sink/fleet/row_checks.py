"""The questions of fleets and claims about rows: whether tables fit them, and whether a registry knows the schema."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from assignors.clients import shown
from spark_sink.checks import Check, check_registry, check_table, selects
from spark_sink.lake.table_contract import KEYS
from spark_sink.options.option_spellings import spelled
from spark_sink.options.value_format import TOPIC
from spark_sink.sink.row_options import RowOptions

_MOST_SUBJECTS = 8  # of those that a check asks for


def row_checks(  # noqa: PLR0913, PLR0917 -- what a table is
    rows: RowOptions,
    table: str,
    group: str,
    storage: Mapping[str, str],
    topics: Sequence[str],
    pattern: str | None,
    source: str = "",
) -> list[Check]:
    """Return the questions about a table, and about the registry if there is one.

    Args:
        rows: how records become rows.
        table: address of the table.
        group: name of the positions in the table.
        storage: options of the object store.
        topics: the topics that are named.
        pattern: adds the topics whose whole name matches; None adds none.
        source: beginning of the names of the checks.
    """
    columns = rows.columns
    known = pa.schema(list(KEYS.items())) if columns is None else columns
    merge, selected = rows.table.merge_schema, selects(topics, pattern)

    def ask() -> str:
        return check_table(table, group, storage, known, merge_schema=merge, selected=selected)

    found = [
        Check(
            subject=f"{source}table",
            place=table,
            ask=lambda: _respelled(rows, ask),
        )
    ]
    if columns is None:
        url = shown(str(rows.value.registry["url"]))
        found.append(
            Check(subject=f"{source}registry", place=url, ask=lambda: _respelled(rows, lambda: _registry(rows, topics)))
        )
    return found


def _respelled(rows: RowOptions, ask: Callable[[], str]) -> str:
    with spelled(rows.spelling):
        return ask()


def _registry(rows: RowOptions, topics: Sequence[str]) -> str:
    """Ask for the subjects; with a subject for each topic of a pattern, only whether the registry answers."""
    if TOPIC not in str(rows.value.subject):
        return check_registry(rows.value)
    return "; ".join(check_registry(rows.value_of(topic)) for topic in topics[:_MOST_SUBJECTS]) or _answers(rows)


def _answers(rows: RowOptions) -> str:
    url = shown(str(rows.value.registry["url"]))
    return f"{url}: subject {rows.value.subject!r}, asked when a topic is read"
