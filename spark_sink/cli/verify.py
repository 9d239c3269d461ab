"""`azimuth verify`: checks that a table has every offset exactly once, and names those it has not."""

import json
from typing import TYPE_CHECKING, Any

import typer

from spark_sink.cli._option_values import AsJson, counted
from spark_sink.cli._tables import Address, Fleet, Group, Storage, not_read, say_fault, tables
from spark_sink.errors import SparkSinkError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_sink.lake.holes_and_doubles import Report, Run

_NAMED = 10


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify", rich_help_panel="Look and check (changes nothing)")(verify)


def verify(
    table: Address = None,
    group: Group = None,
    storage: Storage = None,
    fleet: Fleet = None,
    as_json: AsJson = False,
) -> None:
    """Check that tables have every record once, reading only the tables; exit code 1 if one has not."""
    from spark_sink.lake.holes_and_doubles import verify as check

    chosen = tables(table, fleet, group, storage)
    reports, values, code = [], [], 0
    for address, found in chosen.each(lambda one: check(one, chosen.group, chosen.storage)):
        if isinstance(found, SparkSinkError):
            values.append({"table": address, "error": str(found)})
            code = 2
            if not as_json:
                say_fault(found)
            continue
        reports.append(found)
        values.append({"table": address, **_value(found)})
        code = max(code, 0 if found.ok else 1)
        if not as_json:
            _print(address, found)
    if as_json:
        typer.echo(json.dumps(values if chosen.named else _value(reports[0])))
    elif chosen.named:
        typer.echo(
            f"{chosen.named}: {sum(one.rows for one in reports)} rows in {counted(len(reports), 'table')}, "
            f"{sum(one.duplicates for one in reports)} duplicates, {sum(one.missing for one in reports)} missing"
            f"{not_read(len(values) - len(reports))}"
        )
    raise typer.Exit(code)


def _value(report: "Report") -> dict[str, Any]:
    return {
        "rows": report.rows,
        "duplicates": report.duplicates,
        "missing": report.missing,
        "partitions": len(report.findings),
        "findings": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "rows": one.rows,
                "begin": one.begin,
                "end": one.end,
                "duplicates": [list(run) for run in one.doubles],
                "quarantine_duplicates": [list(run) for run in one.quarantine_doubles],
                "missing": [list(run) for run in one.holes],
            }
            for one in report.findings
            if one.duplicates or one.holes
        ],
    }


def _print(table: str, report: "Report") -> None:
    for one in report.findings:
        if one.holes:
            typer.echo(f"{one.topic}/{one.partition}: {one.missing} missing: {_runs(one.holes)}")
        if one.doubles:
            typer.echo(f"{one.topic}/{one.partition}: {_rows(one.doubles)} double: {_runs(one.doubles)}")
        if again := one.quarantine_doubles:
            typer.echo(f"{one.topic}/{one.partition}: {_rows(again)} double in the quarantine: {_runs(again)}")
    typer.echo(
        f"{table}: {report.rows} rows in {len(report.findings)} partitions, "
        f"{report.duplicates} duplicates, {report.missing} missing"
    )
    if report.duplicates:
        typer.echo(f"`azimuth repair {table}` removes rows that are there twice; --dry-run shows them")
    if report.missing:
        typer.echo("the end of a transaction, and what compaction removed, look missing, too")
        if not table.startswith("iceberg://"):
            typer.echo(
                f"a RESTORE takes rows back, too: `azimuth rewind {table}` shows where the agents have to read again"
            )


def _rows(runs: "Sequence[Run]") -> int:
    return sum(end - first for first, end in runs)


def _runs(runs: "Sequence[Run]") -> str:
    named = [str(first) if end == first + 1 else f"{first}-{end - 1}" for first, end in runs[:_NAMED]]
    return ", ".join(named) + (f" and {len(runs) - _NAMED} runs more" if len(runs) > _NAMED else "")
