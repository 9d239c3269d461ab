"""`azimuth rewind`: sets the positions of a table back to the offsets of its rows."""

import json
from functools import partial
from typing import Annotated

import typer

from spark_sink.cli._long_steps import long_step
from spark_sink.cli._option_values import AsJson, storage_pairs
from spark_sink.cli._tables import Group, Storage
from spark_sink.errors import OptionError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rewind", rich_help_panel="Ingest into Delta or Iceberg")(rewind)


def rewind(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Address of the table.")],
    group: Group = None,
    storage: Storage = None,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Write it; without it, only show the changes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set positions back to the rows' offsets, after a RESTORE or rollback; a dry run without --apply.

    Stop the agents first.
    """
    from spark_sink.lake.matching_tables import has_placeholder
    from spark_sink.lake.table_addresses import full_address
    from spark_sink.sink.rewind.delta_rewind import rewind as set_back

    if has_placeholder(table):
        raise OptionError(f"{table}: a rewind is of one table: name it, without {{topic}} and {{cluster}}")
    options = storage_pairs(storage)
    table = full_address(table, options)
    with long_step(f"looking at {table}", prints=True):
        found = set_back(table, group, options, apply=apply, tell=partial(typer.echo, err=as_json))
    if as_json:
        typer.echo(json.dumps([{**one.key._asdict(), "before": one.before, "after": one.after} for one in found]))
        return
    for one in found:
        typer.echo(f"{one.key.topic}/{one.key.partition}: {one.before} -> {one.after}")
    typer.echo(f"{table}: {_outcome(len(found), apply=apply)}")


def _outcome(positions: int, *, apply: bool) -> str:
    if apply and positions:
        return (
            f"{positions} positions were set back\n"
            "start the agents, or resume the topic: they read again from these positions; `azimuth sink` and queries "
            "need a new checkpoint"
        )
    if apply:
        return "no position was set back\nstart the agents again"
    if positions:
        return f"{positions} positions are ahead of the rows; --apply sets them back"
    return (
        "no position is ahead of the rows; --apply is needed only after a RESTORE, a CREATE OR REPLACE TABLE or a "
        "rollback, or for the quarantine"
    )
