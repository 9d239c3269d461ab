"""`azimuth repair`: removes rows that are in a table twice."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spark_sink.cli._option_values import AsJson
from spark_sink.cli._tables import Address, Fleet, Storage, not_read, say_fault, tables

if TYPE_CHECKING:
    from spark_sink.lake.double_row_removal import Repaired


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("repair", rich_help_panel="Ingest into Delta or Iceberg")(repair)


def repair(
    table: Address = None,
    storage: Storage = None,
    fleet: Fleet = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the rows that it would remove.")] = False,
    within_files: Annotated[
        bool, typer.Option("--within-files", help="Also remove rows that equal another row of the same file.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove rows that are in a table twice, in one commit a table; agents may run. Exit code 1 if some stay."""
    from spark_sink.lake.double_row_removal import repair as remove_doubles

    chosen = tables(table, fleet, None, storage)
    done: list[Repaired] = []
    faults: list[dict[str, str]] = []
    read = 0

    def work(address: str) -> None:
        for one in remove_doubles(address, chosen.storage, apply=not dry_run, within_files=within_files):
            done.append(one)
            if not as_json:
                _print(one, dry_run=dry_run)

    for address, error in chosen.each(work):
        if error is None:
            read += 1
            continue
        faults.append({"table": address, "error": str(error)})
        if not as_json:
            say_fault(error)
    if as_json:
        typer.echo(json.dumps([*(_value(one) for one in done), *faults]))
    elif chosen.named:
        rows = sum(one.rows for one in done)
        typer.echo(
            f"{chosen.named}: {rows} double rows of {read} tables "
            f"{'would be removed' if dry_run else 'were removed'}{not_read(len(faults))}"
        )
    raise typer.Exit(2 if faults else 1 if any(one.different or one.repeated for one in done) else 0)


def _value(one: "Repaired") -> dict[str, Any]:
    return {
        "table": one.table,
        "rows": one.rows,
        "different": one.different,
        "repeated": one.repeated,
        "files": [
            {
                "path": file.file.path,
                "rows": len(file.dropped),
                "different": file.different,
                "repeated": file.repeated,
            }
            for file in one.files
        ],
    }


def _print(one: "Repaired", *, dry_run: bool) -> None:
    for file in one.files:
        if file.dropped:
            typer.echo(f"{file.file.path}: {len(file.dropped)} double rows")
        if file.different:
            typer.echo(
                f"{file.file.path}: {file.different} rows stay, because another row of their offset has other values"
            )
        if file.repeated:
            typer.echo(
                f"{file.file.path}: {file.repeated} rows stay, because each equals a row of the same file, and a "
                "query may have written both; --within-files removes them, too"
            )
    typer.echo(f"{one.table}: {one.rows} double rows {'would be removed' if dry_run else 'were removed'}")
