"""`azimuth simulate`: compares policies on generated traces or the user's own with the oracle."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from spark_sink.cli import _output
from spark_sink.cli._long_steps import long_step
from spark_sink.cli._option_values import AsJson
from spark_sink.cli._simulation_columns import explained

if TYPE_CHECKING:
    from assignors.simulation import Outcome


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", rich_help_panel="Workers per topic")(simulate)


def simulate(
    trace: Annotated[
        list[str] | None,
        typer.Option(
            help="steady, diurnal, bursts, ramp, hot, outage, random-walk, published; or all. May be repeated.",
            show_default="diurnal, without --csv",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            help="Own trace: a file with time_s, topic, partition, records. Records of a row come evenly from its time "
            "to that of the partition's next row."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="capacity, thresholds, keda, ds2, numaflow, static, oracle; or all. May be repeated.",
            show_default="all but static",
        ),
    ] = None,
    days: Annotated[float, typer.Option(help="Simulated days.")] = 7.0,
    slo_s: Annotated[float, typer.Option(help="Age an unread record may reach, seconds.")] = 300.0,
    worker_rate: Annotated[float, typer.Option(help="Records per second of a worker, for --csv.")] = 1000.0,
    retention_s: Annotated[float, typer.Option(help="Retention, seconds, for --csv.")] = 86_400.0,
    seed: Annotated[int, typer.Option(help="Of the made-up traces.")] = 1,
    as_json: AsJson = False,
    html: Annotated[Path | None, typer.Option(help="Write a report with plots here.")] = None,
) -> None:
    """Show the cost and the misses of each policy on a load, next to the smallest possible."""
    for flag, value in (("--slo-s", slo_s), ("--worker-rate", worker_rate), ("--retention-s", retention_s)):
        if not 0 < value < math.inf:
            raise typer.BadParameter(f"{value:g}, need a finite number above 0", param_hint=flag)
    if html is not None:
        from spark_sink.cli import _simulation_page

        _simulation_page.check(html)
    from assignors.scaling import POLICIES, Pipeline
    from assignors.simulation import (
        STANDARD_TRACES,
        compare_policies,
        generate_traces,
        traces_from_csv,
    )

    names = list(STANDARD_TRACES) if trace == ["all"] else trace or ([] if csv else ["diurnal"])
    traces = [generate_traces(name, days=days, seed=seed) for name in names]
    if csv is not None:
        traces.append(traces_from_csv(csv, worker_rate=worker_rate, retention_s=retention_s))
    policies = [name for name in POLICIES if name != "static"] if policy in (None, ["all"]) else policy or []
    outcomes: list[Outcome] = []
    pipeline = Pipeline.of(slo_s=slo_s)
    runs = len(traces) * len(["oracle", *(name for name in policies if name != "oracle")])
    with long_step(f"simulating: 0 of {runs} runs") as say:
        for one in compare_policies(traces, policies, pipeline):
            outcomes.append(one)
            say(f"simulating: {len(outcomes)} of {runs} runs, the last one {one.trace} with {one.policy}")
    if as_json:
        typer.echo(json.dumps([_as_dict(one) for one in outcomes]))
    else:
        _output.console().print(_table(outcomes))
        typer.echo("\n".join(["", *explained(outcomes, slo_s)]))
    if html is not None:
        _simulation_page.write(html, outcomes, slo_s)
        typer.echo(f"report: {html}", err=True)


def _as_dict(one: "Outcome") -> dict[str, Any]:
    findings = {name: text for run in one.runs for name, (_, text) in run.findings.items()}
    return {
        "trace": one.trace,
        "policy": one.policy,
        **asdict(one.score),
        "ratio_to_oracle": one.ratio,
        "findings": findings,
    }


def _table(outcomes: "list[Outcome]") -> Table:
    # Headings take two lines, so that the table fits into 80 columns without cutting names or numbers.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("trace", overflow="fold")
    table.add_column("policy", overflow="fold")
    for column in (
        "over SLO",
        "avoid- able",
        "worker hours",
        "x oracle",
        "resizes /day",
        "flips /day",
        "moved",
        "lost",
    ):
        table.add_column(column.replace(" ", "\n"), justify="right", no_wrap=True)
    for one in outcomes:
        s = one.score
        table.add_row(
            one.trace,
            one.policy,
            f"{s.over_slo:.2%}",
            f"{s.over_slo_avoidable:.2%}",
            f"{s.worker_hours:.0f}",
            f"{one.ratio:.2f}" if one.ratio else "-",
            f"{s.resizes_per_day:.1f}",
            f"{s.flips_per_day:.1f}",
            str(s.moved),
            str(s.lost),
        )
    return table
