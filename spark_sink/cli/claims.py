"""`azimuth claims run|status`: jobs that claim partitions in a database, and the owner of each partition."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_sink.cli._option_values import AsJson, Brokers, Kafka, given, pairs, storage_pairs, why_unreadable
from spark_sink.cli._process_options import Format, logged
from spark_sink.monitoring.logs.line_format import LogFormat

if TYPE_CHECKING:
    from assignors.claims import Standing

group = typer.Typer(help="Jobs without a consumer group: partitions are claimed in a database.", no_args_is_help=True)

_ENVIRONMENT = "AZIMUTH_CLAIMS_DATABASE"


def _read(address: str) -> str:
    """Return an address; `@FILE` reads it from a file, because every user of a machine can read its command lines.

    Raises:
        typer.BadParameter: the file cannot be read, or is empty.
    """
    if not address.startswith("@"):
        return address
    try:
        found = Path(address[1:]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{address[1:]}: cannot be read: {why_unreadable(error)}") from error
    if not found:
        raise typer.BadParameter(f"{address[1:]}: is empty; need the address of a database")
    return found


_DATABASE = typer.Option(
    envvar=_ENVIRONMENT,
    show_envvar=True,
    callback=_read,
    help="Of the claims: sqlite:///claims.db, postgresql://user@host/db, mariadb://user@host/db; @FILE reads it.",
)


def register(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(group, name="claims", rich_help_panel="Ingest into Delta or Iceberg")


@group.callback()
def claims() -> None:
    """Jobs without a consumer group: partitions are claimed in a database."""


@group.command()
def run(
    name: Annotated[
        str,
        typer.Option("--group", help="Name of the positions in the table; the same for all jobs."),
    ],
    table: Annotated[
        str, typer.Option(help="Delta table, or catalog.namespace.table of Iceberg; {topic} makes one of each topic.")
    ],
    database: Annotated[str, _DATABASE],
    bootstrap_servers: Brokers,
    subscribe: Annotated[list[str] | None, typer.Option(help="Topics, by commas.")] = None,
    subscribe_pattern: Annotated[str | None, typer.Option(help="Regular expression of whole topic names.")] = None,
    owner: Annotated[str | None, typer.Option(help="Name of this job; by default its host and process.")] = None,
    claims_table: Annotated[str, typer.Option(help="Table of the claims.")] = "partition_claims",
    partitions: Annotated[int, typer.Option(help="Claimed at a time.")] = 16,
    records: Annotated[int, typer.Option(help="Read between two commits, at most.")] = 200_000,
    memory_bytes: Annotated[int, typer.Option(help="Memory for records that are not in the table yet.")] = 256 << 20,
    lease_s: Annotated[float, typer.Option(help="A job that is silent for this long loses its partitions.")] = 30.0,
    worth_records: Annotated[float, typer.Option(help="Visit a partition when this many are expected.")] = 1_000.0,
    longest_s: Annotated[float, typer.Option(help="Longest time between visits of a quiet partition, seconds.")] = 5.0,
    include_headers: Annotated[
        bool, typer.Option("--include-headers", help="Also write the records' headers, into the column headers.")
    ] = False,
    value_format: Annotated[
        str, typer.Option(help="raw, json, avro or protobuf: whether values become columns.")
    ] = "raw",
    value_schema: Annotated[
        str | None, typer.Option(help='Columns of JSON values as {"name": "type"}, or an Avro schema.')
    ] = None,
    value_subject: Annotated[
        str | None, typer.Option(help="Subject of the registry; {topic} in it stands for the topic.")
    ] = None,
    value_message: Annotated[str | None, typer.Option(help="Full name of the Protobuf message.")] = None,
    unknown_fields: Annotated[
        str | None, typer.Option(help="Fields without a column: rescue, quarantine or ignore.", show_default="rescue")
    ] = None,
    value_null: Annotated[
        str | None, typer.Option(help="Records without a value: quarantine or keep.", show_default="quarantine")
    ] = None,
    schema_registry: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Property of the registry's client, such as url.")
    ] = None,
    partition_by: Annotated[str | None, typer.Option(help="Partition columns of new tables, by commas.")] = None,
    merge_schema: Annotated[bool, typer.Option("--merge-schema", help="Add columns that a table lacks.")] = False,
    optimistic: Annotated[bool, typer.Option("--optimistic", help="Claim without locks.")] = False,
    metrics_port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port of the Prometheus endpoint.")] = None,
    ops_log: Annotated[
        str | None,
        typer.Option(callback=given, help="Delta table of batches, rows, bytes and errors, by topic and job."),
    ] = None,
    ops_log_s: Annotated[float, typer.Option(help="Seconds between two writes of the ops log.")] = 60.0,
    ops_log_days: Annotated[int, typer.Option(help="Days that the ops log keeps.")] = 90,
    workers_topic: Annotated[
        str | None, typer.Option(help="Topic on which 'azimuth autoscale' publishes jobs per topic.")
    ] = None,
    workers_redis: Annotated[str | None, typer.Option(help="Redis that announces changes of that topic.")] = None,
    kafka: Kafka = None,
    storage: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the object store.")] = None,
    table_format: Annotated[str, typer.Option(help="delta or iceberg.")] = "delta",
    catalog: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Option of the Iceberg catalog, as pyiceberg has them."),
    ] = None,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="End when the records that are there at the start are in the table.")
    ] = False,
    max_runtime: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="With --once: end after this time, too.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the database, brokers, rights and tables.")
    ] = False,
    log_format: Format = LogFormat.TEXT,
) -> None:
    """Ingest until SIGTERM; start as many jobs as the load needs, on any machines.

    With --once, for cron, the exit code is 0 if all is read, 1 if a topic was refused, 3 if the time was over.
    """
    from assignors.claims import Form, Lease, Picking
    from spark_sink.claimed.job_settings import ClaimedSettings
    from spark_sink.lake.ops_log.ops_settings import OpsSettings
    from spark_sink.lake.table_addresses import table_address, table_storage
    from spark_sink.options.option_spellings import Spelling
    from spark_sink.sink.row_options import RowOptions

    topics = tuple(one.strip() for names in subscribe or () for one in names.split(","))
    registry = pairs(schema_registry, "--schema-registry")
    given = {
        "valueFormat": value_format,
        "valueSchema": value_schema,
        "valueSubject": value_subject,
        "valueMessage": value_message,
        "unknownFields": unknown_fields,
        "valueNull": value_null,
        "partitionBy": partition_by,
        "mergeSchema": str(merge_schema),
    }
    named = () if subscribe_pattern else topics
    stored, in_catalog = storage_pairs(storage), pairs(catalog, "--catalog")
    if table_format not in {"delta", "iceberg"}:
        raise typer.BadParameter(f"{table_format!r}, need delta or iceberg", param_hint="--table-format")
    ops = None
    if ops_log is not None:
        ops = OpsSettings(table=ops_log, every_s=ops_log_s, keep_days=ops_log_days, storage=stored)
    address = table_address(table, table_format, in_catalog, stored)
    settings = ClaimedSettings(
        name=name,
        table=address,
        database=database,
        kafka={"bootstrap.servers": bootstrap_servers, **pairs(kafka, "--kafka")},
        topics=topics,
        pattern=subscribe_pattern,
        claims_table=claims_table,
        owner=owner,
        partitions=partitions,
        records=records,
        memory_bytes=memory_bytes,
        lease=Lease(lease_s=lease_s),
        picking=Picking(worth_records=worth_records, longest_s=longest_s),
        form=Form.OPTIMISTIC if optimistic else Form.LOCKING,
        storage=table_storage(stored, in_catalog),
        rows=RowOptions.parse(
            given, registry, table=address, topics=named, headers=include_headers, spelling=Spelling.FLAG
        ),
        metrics_port=metrics_port,
        ops=ops,
        once=once,
        max_runtime_s=max_runtime,
        workers_topic=workers_topic,
        workers_redis=workers_redis,
    )
    secrets = {
        "database": database,
        "workers_redis": workers_redis,
        "kafka": settings.kafka,
        "storage": settings.storage,
        "registry": registry,
    }
    if check:
        from spark_sink.cli._check_lines import only_findings, report

        with only_findings(secrets):
            from spark_sink.claimed.job_checks import run_checks

            report(run_checks(settings))
    with logged(log_format, secrets, agent=settings.owner):
        from spark_sink.claimed import run as run_job

        raise typer.Exit(run_job(settings))


@group.command()
def status(
    database: Annotated[str, _DATABASE],
    claims_table: Annotated[str, typer.Option(help="Table of the claims.")] = "partition_claims",
    as_json: AsJson = False,
) -> None:
    """Show the owner of each partition, since when and until when, by the database's clock."""
    from assignors.claims import standings

    found = standings(database, claims_table)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found]))
    else:
        _print(found)


def _print(found: "list[Standing]") -> None:
    from spark_sink.cli import _output

    # An id of a cluster has 22 characters: in each row it left so little room that the topics took several lines.
    clusters = {one.cluster for one in found}
    first = ("cluster",) if len(clusters) > 1 else ()
    columns = (*first, "partition", "owner", "lease", "picked", "due", "epoch", "offset", "rec/s")
    console, table = _output.console(), _output.table(*columns, names=("cluster", "partition", "owner"))
    for one in found:
        table.add_row(
            *((one.cluster,) if first else ()),
            f"{one.topic}/{one.partition}",
            one.owner or "-",
            f"{one.lease_s:.1f} s" if one.held else f"free {one.free_s:.0f} s",
            "never" if one.picked_s is None else f"{one.picked_s:.0f} s ago",
            "-" if one.held else "now" if one.due_s <= 0 else f"{one.due_s:.1f} s",
            str(one.epoch),
            "-" if one.committed_offset is None else str(one.committed_offset),
            f"{one.volume:.0f}",
        )
    console.print(table)
    owners = {one.owner for one in found if one.held}
    waits = [one.free_s for one in found if not one.held and one.due_s <= 0]
    where = f"cluster {clusters.pop()}: " if len(clusters) == 1 else ""
    console.print(
        f"{where}{len(found)} partitions, {sum(one.held for one in found)} held by {len(owners)} jobs, "
        f"{len(waits)} free and due" + (f", the longest for {max(waits):.1f} s" if waits else ""),
        soft_wrap=True,
    )
