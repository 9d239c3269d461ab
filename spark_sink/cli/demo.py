"""`azimuth demo`: the whole pipeline on this machine, with real data and a killed agent."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from spark_sink.cli import _output
from spark_sink.demo.agents import Part


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", rich_help_panel="Try on this machine")(demo)


def demo(
    directory: Annotated[Path, typer.Option("--dir", help="For the report, the table and the logs.")] = Path(
        "build/demo"
    ),
    kill: Annotated[Part, typer.Option(help="Part of an agent that is killed with SIGKILL.")] = Part.WHOLE,
    flights: Annotated[
        int | None, typer.Option(help="Number of flights, the first ones; 30000 or more.", show_default="all")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, as in report.json.")] = False,
) -> None:
    """Run the whole pipeline: three zones, 336,776 flights, an agent that is killed, every record exactly once.

    Writes report.json and report.html. Exit code 1 if the table differs from the data set.
    """
    from spark_sink.demo.run import run_demo
    from spark_sink.demo.settings import DemoSettings

    console = Console(stderr=True)
    report = run_demo(DemoSettings(directory=directory, kill=kill, flights=flights), console)
    if as_json:
        typer.echo(json.dumps(report))
    else:
        _print(report, directory)
    if not report["ok"]:
        for sentence in report["findings"]:
            typer.echo(sentence, err=True)
        raise typer.Exit(1)


def _takeover(report: dict[str, Any]) -> str:
    parts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in (report["takeover_parts"] or {}).items())
    return f"{report['takeover_seconds']} s" + (f" ({parts})" if parts else "")


def _print(report: dict[str, Any], directory: Path) -> None:
    seconds = report["seconds"]
    share = report["cross_zone_share"]
    rows = {
        "rows": f"{report['rows']:,} of {report['expected_rows']:,}",
        "duplicates, missing": f"{report['duplicates']}, {report['missing']}",
        "values that differ": str(report["values_differ"]),
        "takeover after the kill": _takeover(report),
        "records a second while busy, a core": (
            f"{report['records_per_second']:,}, {report['records_per_core_second']:,} "
            f"(of {report['busy_seconds']} s; the agents started in {report['start_seconds']} s)"
            if report["busy_seconds"]
            else "not measured"
        ),
        "partitions moved, owned by the killed": (
            f"{report['partitions_moved_on_kill']}, {report['partitions_owned_by_killed']}"
        ),
        "bytes across zones, default -> AZ-aware": f"{share['default']:.1%} -> {share['az_aware']:.1%}",
        "freshness, 95th percentile": f"{report['freshness_p95_seconds']} s",
        "cluster, produce, ingest, total": (
            f"{seconds['cluster']}, {seconds['produce']}, {seconds['ingest']}, {seconds['total']} s"
        ),
        "report": str(directory / "report.html"),
    }
    table = _output.table("figure", "value", names=("figure", "value"))
    table.show_header = False
    for name, value in rows.items():
        table.add_row(name, value)
    _output.console().print(table)
