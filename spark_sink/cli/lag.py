"""`azimuth lag`: the lag of a group."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from spark_sink.cli._error_sentences import reasoned
from spark_sink.cli._fleet_file import load_fleet
from spark_sink.cli._long_steps import long_step
from spark_sink.cli._option_values import AsJson, BrokersOrNone, Kafka, counted, given, pairs, storage_pairs
from spark_sink.cli._tables import Fleet, Storage

if TYPE_CHECKING:
    from spark_sink.kafka.group_lag import TopicLag
    from spark_sink.ranges.batch_offset import TopicPartition

_CLUSTER: Final = "{cluster}"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("lag", rich_help_panel="Look and check (changes nothing)")(lag)


def lag(
    bootstrap_servers: BrokersOrNone = None,
    group: Annotated[str | None, typer.Option(callback=given, help="Consumer group.")] = None,
    table: Annotated[
        str | None,
        typer.Option(
            callback=given,
            help="Table whose positions count, not the group's offsets; {topic} as in agents.",
        ),
    ] = None,
    kafka: Kafka = None,
    storage: Storage = None,
    fleet: Fleet = None,
    as_json: AsJson = False,
) -> None:
    """Show the lag of a group, or of a fleet by its tables, by topic."""
    options = storage_pairs(storage)
    if fleet is not None:
        if bootstrap_servers or group or table or kafka:
            raise typer.BadParameter("the file has brokers, group and tables", param_hint="--fleet")
        _lag_of_fleet(fleet, options, as_json=as_json)
    if bootstrap_servers is None or group is None:
        raise typer.BadParameter("give --bootstrap-servers and --group, or --fleet FILE")
    if table is not None and _CLUSTER in table:
        raise typer.BadParameter(
            f"{table!r} means the tables of several clusters: put the name of one in the place of {_CLUSTER}, or give "
            "--fleet FILE",
            param_hint="--table",
        )
    properties = {"bootstrap.servers": bootstrap_servers, **pairs(kafka, "--kafka")}
    found = _lag_of_group(group, properties, table, options)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found]))
        return
    _print(group, found)


def _lag_of_group(
    group: str, properties: dict[str, str], table: str | None, options: dict[str, str]
) -> "Sequence[TopicLag]":
    from spark_sink.cli._reachable import reach
    from spark_sink.errors import LagError, TableError
    from spark_sink.kafka.group_lag import admin, behind, committed
    from spark_sink.lake.positions_in_delta_log import positions

    client = admin(properties)
    table = _checked(table, options) if table else None
    at: Mapping[TopicPartition, int] = {}
    if table:
        with long_step(f"looking at {table}"):
            at = positions(table, group, options)
        if not at:
            raise TableError(f"{table}: it holds no position of group {group!r}; check --table and --group")
    reach(properties)
    with reasoned(properties):
        known = at or committed(client, properties, group)
    if not known:
        raise LagError(
            f"group {group!r} has committed no offsets on this cluster: check --group, or wait for its first commit; "
            "a fleet's lag shows with --fleet FILE, that of jobs with claims with --table"
        )
    with reasoned(properties):
        found = behind(client, properties, known)
    if not found:  # no topic would look like no lag
        topics = sorted({key.topic for key in known})
        raise LagError(
            f"topic {topics[0]}{f' and {len(topics) - 1} more' if len(topics) > 1 else ''} on "
            f"{properties['bootstrap.servers']}: there is no such topic, or this user may not describe it: allow it "
            "DESCRIBE, or check --bootstrap-servers"
        )
    return _marked(found, group, properties)


def _checked(table: str, options: dict[str, str]) -> str:
    """Return the address of tables of either format; refuse `{topic}` in the place of a bucket or a catalog."""
    from spark_sink.lake.iceberg.catalogs import iceberg_address
    from spark_sink.lake.matching_tables import refuse_bucket
    from spark_sink.lake.table_addresses import full_address, is_iceberg

    address = full_address(table, options)
    if is_iceberg(address):
        return iceberg_address(address)
    refuse_bucket(address)
    return address


def _marked(found: "Sequence[TopicLag]", group: str, properties: dict[str, str]) -> "Sequence[TopicLag]":
    """Mark the paused topics; a lag that nothing reduces would look like a fault."""
    from assignors.errors import PauseError
    from assignors.pauses import PausesFeed
    from spark_sink.kafka.client_property_names import librdkafka_config

    with PausesFeed(librdkafka_config(properties)) as feed:
        try:
            feed.refresh(to_end=True)
        except PauseError as error:
            typer.echo(f"azimuth: pauses are not shown: {error}", err=True)
        paused = feed.paused(group)
    return [replace(one, paused=one.topic in paused) for one in found]


def _lag_of_fleet(file: Path, options: dict[str, str], *, as_json: bool) -> NoReturn:
    """Show the lag of each source of a fleet; the fault of one source stops no other.

    Raises:
        typer.Exit: always; the code is 2 if the lag of a source is not known.
    """
    from assignors.errors import AssignorError
    from spark_sink.errors import SparkSinkError

    settings = load_fleet(file, "lag")
    values: list[dict[str, Any]] = []
    total = unknown = 0
    for name in settings.sources:
        table = settings.address(name)
        try:
            found = _lag_of_group(settings.name, settings.kafka(name), table, {**settings.table_storage, **options})
        except (SparkSinkError, AssignorError) as error:
            values.append({"source": name, "error": str(error)})
            unknown += 1
            if not as_json:
                typer.echo(f"azimuth: source {name!r}: {error}", err=True)
            continue
        total += sum(one.lag_records for one in found)
        values += [{"source": name, **asdict(one)} for one in found]
        if not as_json:
            _print(f"source {name}", found)
    if as_json:
        typer.echo(json.dumps(values))
    else:
        known = f"{counted(total, 'record')} behind" if unknown < len(settings.sources) else "lag unknown"
        more = f"; the lag of {unknown} is unknown" if 0 < unknown < len(settings.sources) else ""
        typer.echo(f"fleet {settings.name!r}: {known}, {counted(len(settings.sources), 'source')}{more}")
    raise typer.Exit(2 if unknown else 0)


def _print(group: str, found: "Sequence[TopicLag]") -> None:
    """Print the topics with lag, the largest first; lines for hundreds of topics without lag would hide them."""
    late = sorted((one for one in found if one.lag_records), key=lambda one: -one.lag_records)
    for one in late:
        partition, records = one.worst
        mark = ", paused" if one.paused else ""
        number = counted(one.partitions, "partition")
        typer.echo(f"{one.lag_records:>12}  {one.topic}  ({number}, most in {partition}: {records}{mark})")
    paused = sum(one.paused for one in found)
    more = f", {paused} paused" if paused else ""
    total = sum(one.lag_records for one in late)
    typer.echo(f"{group}: {counted(total, 'record')} behind, in {len(late)} of {len(found)} topics{more}")
