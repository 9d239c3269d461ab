"""`azimuth sink`: one ingestion agent, from a consumer group into a Delta or Iceberg table."""

import json
from pathlib import Path
from typing import Annotated

import typer

from spark_sink.cli._option_values import BrokersOrNone, Kafka, given, pairs
from spark_sink.cli._option_values import workers as read_workers
from spark_sink.cli._process_options import Format, logged
from spark_sink.monitoring.logs.line_format import LogFormat

_Pairs = list[str] | None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sink", rich_help_panel="Ingest into Delta or Iceberg")(sink)


def sink(
    config: Annotated[Path | None, typer.Option(help="TOML file with the settings below.")] = None,
    bootstrap_servers: BrokersOrNone = None,
    group: Annotated[
        str | None, typer.Option(callback=given, help="Consumer group; its agents share the partitions.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            callback=given,
            help="Address of a Delta table, or name of an Iceberg table; with {topic}, one table for each topic.",
        ),
    ] = None,
    table_format: Annotated[str | None, typer.Option(help="delta or iceberg.", show_default="delta")] = None,
    catalog: Annotated[
        _Pairs, typer.Option(metavar="NAME=VALUE", help="Option of the Iceberg catalog, as pyiceberg has them.")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(callback=given, help="Folder for Spark's checkpoint, this agent's own.")
    ] = None,
    subscribe: Annotated[str | None, typer.Option(callback=given, help="Topics, by commas.")] = None,
    subscribe_pattern: Annotated[
        str | None, typer.Option(callback=given, help="Regular expression of whole topic names.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(callback=given, help="The agent's permanent name.", show_default="host name")
    ] = None,
    rack: Annotated[str | None, typer.Option(callback=given, help="The agent's zone.")] = None,
    assignor: Annotated[str | None, typer.Option(help="hrw or shuffled.", show_default="hrw")] = None,
    workers: Annotated[
        _Pairs, typer.Option(metavar="K|TOPIC=K", help="Agents per topic, of all or of a topic or pattern.")
    ] = None,
    workers_topic: Annotated[
        str | None,
        typer.Option(callback=given, help="Topic on which 'azimuth autoscale' publishes agents per topic."),
    ] = None,
    starting_offsets: Annotated[
        str | None, typer.Option(callback=given, help="Where unknown partitions begin.", show_default="earliest")
    ] = None,
    max_offsets_per_trigger: Annotated[
        int | None, typer.Option(help="Maximum number of offsets that a batch reads.")
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(
            help="Time between batches, or 'available-now' to end when caught up.", show_default="500 milliseconds"
        ),
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master.", show_default="local[*]")] = None,
    driver_memory: Annotated[str | None, typer.Option(help="Heap of Spark's driver.", show_default="768m")] = None,
    landing: Annotated[
        str | None, typer.Option(help="direct: reading tasks write the files; or rows.", show_default="direct")
    ] = None,
    ops_log: Annotated[
        str | None,
        typer.Option(callback=given, help="Delta table of batches, rows, bytes and errors, by topic and agent."),
    ] = None,
    ops_log_s: Annotated[
        float | None, typer.Option(help="Seconds between two writes of the ops log.", show_default="60")
    ] = None,
    ops_log_days: Annotated[int | None, typer.Option(help="Days that the ops log keeps.", show_default="90")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port of the Prometheus endpoint.")] = None,
    kafka: Kafka = None,
    source: Annotated[
        _Pairs, typer.Option(metavar="NAME=VALUE", help="More options of kafka-group, such as valueFormat=json.")
    ] = None,
    sink: Annotated[
        _Pairs, typer.Option(metavar="NAME=VALUE", help="More options of the table's sink, such as partitionBy=topic.")
    ] = None,
    storage: Annotated[_Pairs, typer.Option(metavar="NAME=VALUE", help="Option of the object store.")] = None,
    spark: Annotated[_Pairs, typer.Option(metavar="NAME=VALUE", help="Spark configuration.")] = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Only check settings, brokers, rights, registry and table; without Spark.")
    ] = False,
    log_format: Format = LogFormat.TEXT,
) -> None:
    """Ingest topics into a table, every record once, until SIGTERM or Ctrl-C.

    Flags override AZIMUTH_* variables, variables the file.
    """
    flags = {name: value for name, value in locals().items() if name not in {"config", "check", "log_format"}}
    for name in ("catalog", "kafka", "source", "sink", "storage", "spark"):
        flags[name] = pairs(flags[name], f"--{name}")
    flags["workers"] = json.dumps(read_workers(workers)) if workers else None
    from spark_sink.agent.agent_settings import AgentSettings

    settings = AgentSettings.load(config, flags)
    if check:
        from spark_sink.cli._check_lines import only_findings, report

        with only_findings(settings.model_dump()):
            from spark_sink.agent.sink_checks import run_checks

            report(run_checks(settings))
    with logged(log_format, settings.model_dump(), agent=settings.agent):
        from spark_sink.agent.start.early_spark import early_spark
        from spark_sink.agent.stop_signal import StopSignal

        stop = StopSignal()
        with early_spark(settings) as early:
            from spark_sink.agent.spark_agent import run

            run(settings, early, stop)
