"""`azimuth lag`: the lag of a group."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from spark_sink.cli._pairs import pairs
from spark_sink.cli._reasons import reasoned
from spark_sink.cli._texts import given, servers

if TYPE_CHECKING:
    from spark_sink.kafka.group_lag import TopicLag


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("lag", rich_help_panel="Look and check (changes nothing)")(lag)


def lag(  # noqa: PLR0913, PLR0917 -- each is a flag
    bootstrap_servers: Annotated[str, typer.Option(callback=servers, help="Kafka brokers, host:port by commas.")],
    group: Annotated[str, typer.Option(callback=given, help="Consumer group.")],
    table: Annotated[
        str | None, typer.Option(callback=given, help="Delta table whose positions count, not the group's offsets.")
    ] = None,
    kafka: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Kafka client property.")] = None,
    storage: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the object store.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the lag of a group, by topic."""
    from spark_sink.cli._reachable import reach  # noqa: PLC0415 -- as above
    from spark_sink.errors import LagError, TableError  # noqa: PLC0415 -- with the rest
    from spark_sink.kafka.group_lag import admin, behind, committed  # noqa: PLC0415 -- clients load slowly
    from spark_sink.lake.positions import positions  # noqa: PLC0415 -- as above

    properties = {"bootstrap.servers": bootstrap_servers, **pairs(kafka, "--kafka")}
    options = pairs(storage, "--storage")
    client = admin(properties)
    at = positions(table, group, options) if table else {}
    if table and not at:
        raise TableError(f"{table}: it holds no position of group {group!r}; check --table and --group")
    reach(properties)
    with reasoned(properties):
        known = at or committed(client, properties, group)
    if not known:
        raise LagError(
            f"group {group!r} has committed no offsets on this cluster: check --group; "
            "of a fleet, or of jobs with claims, --table says how far it is"
        )
    with reasoned(properties):
        found = behind(client, properties, known)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found]))
        return
    _print(group, found)


def _print(group: str, found: "Sequence[TopicLag]") -> None:
    """Print the topics with lag, the largest first; lines for hundreds of topics without lag would hide them."""
    late = sorted((one for one in found if one.lag_records), key=lambda one: -one.lag_records)
    for one in late:
        partition, records = one.worst
        typer.echo(f"{one.lag_records:>12}  {one.topic}  ({one.partitions} partitions, most in {partition}: {records})")
    total = sum(one.lag_records for one in late)
    typer.echo(f"{group}: {total} records behind, in {len(late)} of {len(found)} topics")
