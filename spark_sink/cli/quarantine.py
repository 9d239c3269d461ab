"""`azimuth quarantine`: records that could not be decoded: lists, replays into the table, publishes to a topic."""

import importlib
import json
import logging
import sys
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spark_sink.agent.stop_signal import stop_on_signals
from spark_sink.cli._option_values import AsJson, Brokers, Kafka, given, pairs, storage_pairs
from spark_sink.cli._process_options import Format, logged
from spark_sink.cli._tables import Fleet, Group, Storage, Tables, not_read, say_fault, tables
from spark_sink.errors import OptionError, SparkSinkError
from spark_sink.monitoring.logs.line_format import LogFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from spark_sink.sink.quarantine.dead_letter_publisher import Publisher
    from spark_sink.sink.quarantine.quarantine_replay import Repair

_LARGEST = 2**63 - 1  # of the columns
_TIMES = ("timestamp", "ingested_at")
_log = logging.getLogger("azimuth.quarantine")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Table = Annotated[
    str | None,
    typer.Argument(
        metavar="TABLE",
        help="Address of the table (not of its quarantine); {topic} and {cluster} stand for any name.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(help="Records that could not be decoded.", no_args_is_help=True)
    commands.command("list")(list_)
    commands.command("show")(show)
    commands.command("replay")(replay)
    commands.command("publish")(publish)
    app.add_typer(commands, name="quarantine", rich_help_panel="Ingest into Delta or Iceberg")


def list_(
    table: _Table = None, group: Group = None, storage: Storage = None, fleet: Fleet = None, as_json: AsJson = False
) -> None:
    """Count the quarantined records that wait for a replay, by topic and error."""
    from spark_sink.sink.quarantine.quarantine_listing import COUNTED, counts

    chosen, total, read, faults = _tables(table, fleet, group, storage), 0, 0, 0
    values: list[dict[str, Any]] = []
    for address, found in chosen.each(lambda one: counts(_waiting(one, chosen, COUNTED))):
        where = {"table": address} if chosen.named else {}
        if isinstance(found, SparkSinkError):
            values.append({"table": address, "fault": str(found)})
            faults += 1
            if not as_json:
                say_fault(found)
            continue
        records = sum(found.values())
        total, read = total + records, read + 1
        values += [{**where, "topic": topic, "error": name, "records": n} for (topic, name), n in found.items()]
        if as_json or (chosen.named and not records):  # of hundreds of tables most have no such records
            continue
        for (topic, name), number in sorted(found.items(), key=str):
            typer.echo(f"{number:>8}  {topic}  {name}")
        typer.echo(f"{address}: {records} records wait in quarantine")
    if as_json:
        typer.echo(json.dumps(values))
    elif chosen.named:
        typer.echo(f"{chosen.named}: {total} records wait in quarantine, of {read} tables{not_read(faults)}")
    raise typer.Exit(2 if faults else 0)


def show(
    table: _Table = None,
    topic: Annotated[str | None, typer.Option(callback=given, help="Of this topic only.")] = None,
    partition: Annotated[int | None, typer.Option(max=_LARGEST, help="Of this partition only.")] = None,
    offset: Annotated[int | None, typer.Option(max=_LARGEST, help="This offset only.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Records at most.")] = 10,
    group: Group = None,
    storage: Storage = None,
    fleet: Fleet = None,
    as_json: AsJson = False,
) -> None:
    """Show quarantined records in full, with the reason."""
    from spark_sink.formats.bad_values_quarantined import python_rows
    from spark_sink.sink.quarantine.quarantine_listing import lowest

    wanted = {"topic": topic, "partition": partition, "offset": offset}
    asked = {name: value for name, value in wanted.items() if value is not None}
    chosen, shown, faults = _tables(table, fleet, group, storage), list[dict[str, Any]](), 0
    for _, rows in chosen.each(lambda one: lowest(_waiting(one, chosen), asked, limit)):
        if isinstance(rows, SparkSinkError):
            say_fault(rows)
            faults += 1
            continue
        shown += [] if rows is None else python_rows(rows)
    shown = [{**row, **{name: _time(row[name]) for name in _TIMES}} for row in shown[:limit]]
    if as_json:
        typer.echo(json.dumps([{name: _plain(value) for name, value in row.items()} for row in shown]))
        raise typer.Exit(2 if faults else 0)
    if not shown:
        typer.echo(f"{chosen.named or table}: no such record waits in quarantine{not_read(faults)}")
    for row in shown:
        typer.echo(
            f"{row['topic']}/{row['partition']} offset {row['offset']}: {row['error_class']}: {row['error_text']}"
        )
        for name in ("timestamp", "key", "value", "headers", "schema_id", "run_id", "ingested_at"):
            typer.echo(f"    {name}: {_plain(row[name])}")
    raise typer.Exit(2 if faults else 0)


def replay(
    table: _Table = None,
    repair: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="Arrow table of records -> Arrow table of rows.")
    ] = None,
    group: Group = None,
    storage: Storage = None,
    fleet: Fleet = None,
) -> None:
    """Replay quarantined records into the table, each exactly once; records that the repair leaves out keep waiting."""
    from spark_sink.sink.quarantine.quarantine_replay import replay as bring

    mended, chosen = _repair(repair), _tables(table, fleet, group, storage)
    rows = left = read = faults = 0
    for address, done in chosen.each(lambda one: bring(one, _group(one, chosen), mended, chosen.storage)):
        if isinstance(done, SparkSinkError):
            say_fault(done)
            faults += 1
            continue
        rows, left, read = rows + done.rows, left + done.left, read + 1
        if not chosen.named or done.rows or done.left:
            typer.echo(f"{address}: {done.rows} records replayed, {done.left} still wait")
    if chosen.named:
        typer.echo(f"{chosen.named}: {rows} records replayed, {left} still wait, of {read} tables{not_read(faults)}")
    raise typer.Exit(2 if faults else 0)


def publish(
    topic: Annotated[str, typer.Option(callback=given, help="Kafka topic of the dead letters; it must exist.")],
    bootstrap_servers: Brokers,
    table: _Table = None,
    every_s: Annotated[
        float | None,
        typer.Option("--every", min=0.1, help="Seconds between two runs, until SIGTERM; without it, run once."),
    ] = None,
    kafka: Kafka = None,
    group: Group = None,
    storage: Storage = None,
    fleet: Fleet = None,
    log_format: Format = LogFormat.TEXT,
) -> None:
    """Publish quarantined records to a Kafka topic, each once, with the reason in headers named as Kafka Connect's."""
    properties = {"bootstrap.servers": bootstrap_servers, **pairs(kafka, "--kafka")}

    def once(publisher: "Publisher") -> int:
        return _publish(publisher, _tables(table, fleet, group, storage), log_format)

    with logged(log_format, {"kafka": properties, "storage": storage_pairs(storage)}):
        faults = _rounds(properties, topic, every_s, once)
    raise typer.Exit(2 if faults else 0)


def _rounds(properties: dict[str, str], topic: str, every_s: float | None, once: "Callable[[Publisher], int]") -> int:
    """Publish once, or until a signal; return the number of tables that were not read in the last round."""
    from spark_sink.cli._reachable import reach, reach_topic
    from spark_sink.kafka.client_property_names import librdkafka_config
    from spark_sink.sink.quarantine.dead_letter_publisher import Publisher

    reach(properties)
    reach_topic(properties, topic)
    publisher = Publisher(librdkafka_config(properties), topic)
    stopped = None if every_s is None else stop_on_signals()
    while True:
        faults = once(publisher)
        if stopped is None or stopped.wait(every_s):
            return faults


def _publish(publisher: "Publisher", chosen: Tables, form: LogFormat) -> int:
    from spark_sink.sink.quarantine.dead_letter_publisher import Sent

    tell = _log.info if form is LogFormat.JSON else typer.echo
    total, read, faults = Sent(0), 0, 0
    for address, done in chosen.each(lambda one: publisher.publish(one, _group(one, chosen), chosen.storage)):
        if isinstance(done, SparkSinkError):
            if form is LogFormat.JSON:
                _log.error("%s", done)
            else:
                say_fault(done)
            faults += 1
            continue
        total, read = Sent(total.records + done.records, total.stubs + done.stubs), read + 1
        if done.records or not chosen.named:
            tell(f"{address}: {done}")
    if chosen.named:
        tell(f"{chosen.named}: {total}, of {read} tables{not_read(faults)}")
    return faults


def _tables(table: str | None, fleet: Path | None, group: str | None, storage: list[str] | None) -> Tables:
    chosen = tables(table, fleet, group, storage)
    from spark_sink.lake.matching_tables import refuse_quarantine

    if chosen.named is None:
        for address in chosen.addresses:
            refuse_quarantine("quarantine COMMAND", address, chosen.storage)
    return chosen


def _waiting(table: str, chosen: Tables, columns: "Sequence[str] | None" = None) -> "Iterator[pa.Table]":
    from spark_sink.sink.quarantine.quarantine_replay import waiting

    group = _group(table, chosen)
    return waiting(table, group, chosen.storage, columns) if columns else waiting(table, group, chosen.storage)


def _group(table: str, chosen: Tables) -> str:
    from spark_sink.lake.holes_and_doubles import writing_group

    return writing_group(table, chosen.group, chosen.storage)


def _repair(name: str | None) -> "Repair | None":
    if name is None:
        return None
    module, colon, function = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Repair = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(f"--repair {name!r}: {error if colon else 'need MODULE:FUNCTION'}") from error

    def reported(records: "pa.Table") -> "pa.Table":
        try:
            return found(records)
        except Exception as error:
            raise OptionError(
                f"--repair {name!r} fails, the records of this part stay in quarantine: {_where(error)}"
            ) from error

    return reported


def _where(error: Exception) -> str:
    """Describe an error in the user's function, with its line."""
    own = traceback.extract_tb(error.__traceback__)[1:2]
    place = f" ({Path(own[0].filename).name}, line {own[0].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"


def _plain(value: Any) -> Any:  # noqa: ANN401 -- any column
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value


def _time(microseconds: int | None) -> str | int | None:
    """Return a time as ISO 8601; its microseconds since 1970 if Python's calendar lacks it."""
    try:
        return None if microseconds is None else (_EPOCH + timedelta(microseconds=microseconds)).isoformat()
    except OverflowError:
        return microseconds
