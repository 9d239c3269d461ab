"""`azimuth fleet status`: live agents, the readers of each topic, and the next in line."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spark_sink.cli._fleet_file import load_fleet
from spark_sink.cli._option_values import AsJson, counted

if TYPE_CHECKING:
    from spark_sink.fleet.fleet_status import FleetStatus

group = typer.Typer(help="Agents over many clusters, each topic on a few of them.", no_args_is_help=True)

_NAMED = 3
_LATE = 10


def register(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(group, name="fleet", rich_help_panel="Ingest into Delta or Iceberg")


@group.callback()
def fleet() -> None:
    """Agents over many clusters, each topic on a few of them."""


@group.command()
def status(
    config: Annotated[Path, typer.Option(help="TOML file of the fleet.")],
    explain: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="Show the readers of this topic and the next in line.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the live agents, their loads, the lag of the topics, and the reason; exit code 1 if there is a problem."""
    import logging

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    from spark_sink.fleet.fleet_status import collect_status

    found = collect_status(load_fleet(config, "status"), explain or ())
    if as_json:
        typer.echo(json.dumps(found.value()))
    else:
        _print(found)
    raise typer.Exit(1 if found.problems else 0)


def _print(found: "FleetStatus") -> None:
    from spark_sink.cli import _output
    from spark_sink.fleet.fleet_lag import summary
    from spark_sink.kafka.pause_watch import described

    console, value = _output.console(), found.value()
    columns = ("agent", "zone", "capacity", "last beat", "topics", "some of them")
    table = _output.table(*columns, names=("agent", "zone", "some of them"))
    for agent in value["agents"]:
        beat = "in its session" if agent["beat_s"] is None else f"{agent['beat_s']:.1f} s ago"
        mine = [one.label for one in found.decision.of(agent["id"])]
        some = ", ".join(mine[:_NAMED]) + (" ..." if len(mine) > _NAMED else "")
        table.add_row(agent["id"], agent["zone"] or "-", f"{agent['capacity']:g}", beat, str(agent["topics"]), some)
    console.print(table)
    connections = value["connections"]
    departed = f", departed: {', '.join(value['departed'])}" if value["departed"] else ""
    console.print(
        f"view {value['version']}: {counted(len(value['agents']), 'agent')}, "
        f"{counted(len(value['topics']), 'topic')}{departed}\n"
        f"connections: {connections['agent_topic']} agent to topic (all to all: {connections['all_to_all']}), "
        f"{connections['agent_cluster']} agent to cluster",
        soft_wrap=True,
    )
    console.print(summary(found.figures), soft_wrap=True)
    late = [(label, one) for label, one in found.figures.items() if one.lag]
    for label, one in sorted(late, key=lambda pair: (-(pair[1].lag or 0), pair[0]))[:_LATE]:
        since = "" if one.lag_s is None else f", the oldest unread is {one.lag_s:.0f} s old"
        rate = "" if one.rate is None else f", {one.rate:,.0f} a second written"
        records = f"{one.lag:,} record{'' if one.lag == 1 else 's'}"
        console.print(f"  {label}: {records}{since}{rate}{_read_by(value['topics'].get(label))}", soft_wrap=True)
    for label, pause in sorted(found.paused.items()):
        console.print(f"paused: {label}{described(pause)}", soft_wrap=True)
    for line in value["lines"]:
        console.print(f"\n{line['topic']} ({line['identity']})", soft_wrap=True)
        for place in line["places"]:
            sign = "*" if place["reads"] else " "
            console.print(f" {sign} {place['rank']:>3} {place['agent']}: {place['reason']}", soft_wrap=True)
        for agent, successor in line["next"].items():
            console.print(f"   when {agent} dies, {_heir(successor, readers=len(line['next']))}", soft_wrap=True)
        console.print(f"   one more worker would be {line['added'] or 'none: all agents read it'}", soft_wrap=True)
        if line["published"] is not None:
            console.print(f"   {_scaled(line['published'])}", soft_wrap=True)
    for problem in value["problems"]:
        console.print(f"! {problem}", soft_wrap=True)


def _read_by(agents: Sequence[str] | None) -> str:
    """Name the agents whose logs have the reason of a lag; none of a topic that appeared meanwhile."""
    if not agents:
        return ""
    more = f" and {len(agents) - _NAMED} more" if len(agents) > _NAMED else ""
    return f", read by {', '.join(agents[:_NAMED])}{more}"


def _scaled(published: dict[str, Any]) -> str:
    """Return the autoscaler's number of a topic, with its reason."""
    ago_s = time.time() - published["at_ms"] / 1000
    why = f"{published['policy'] or 'no policy'}: {published['reason'] or 'no reason given'}"
    return f"the autoscaler published {counted(published['workers'], 'worker')} {ago_s:.0f} s ago ({why})"


def _heir(successor: str | None, *, readers: int) -> str:
    if successor is not None:
        return f"{successor} takes over"
    return "the other readers divide its partitions" if readers > 1 else "no agent is left to read the topic"
