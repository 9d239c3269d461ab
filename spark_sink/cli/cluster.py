"""`azimuth cluster`: a three-zone Kafka on this machine."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from spark_sink.cli import _output
from spark_sink.cli._option_values import AsJson
from spark_sink.demo.cluster import JAR_VARIABLE, BrokerStatus, Cluster, cluster_command, find_assignor_jar

group = typer.Typer(help="A three-zone Kafka on this machine, as local processes.", no_args_is_help=True)

Directory = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        envvar="AZIMUTH_CLUSTER_DIR",
        help="The cluster's directory. Give the same one to each command.",
        show_default="in the cache",
    ),
]
BrokerId = Annotated[int, typer.Argument(metavar="BROKER", help="The broker's id, from 1.", min=1)]


def register(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(group, name="cluster", rich_help_panel="Try on this machine")


@group.command()
def up(
    directory: Directory = None,
    zones: Annotated[str, typer.Option(help="One broker per zone, with that broker.rack.")] = "az-a,az-b,az-c",
    port: Annotated[
        int | None,
        typer.Option(
            help="Port of the first broker; the others take the next ones.", show_default="free ones", min=1, max=65000
        ),
    ] = None,
    broker_assignor: Annotated[
        bool,
        typer.Option(
            "--broker-assignor",
            help=f"Load azimuth-hrw and azimuth-shuffled into the brokers, from {JAR_VARIABLE} or the built jar.",
        ),
    ] = False,
) -> None:
    """Start the cluster, and return when every broker serves."""
    console = Console(stderr=True)
    jar = find_assignor_jar() if broker_assignor else None
    racks = [z.strip() for z in zones.split(",") if z.strip()]
    began = time.monotonic()
    with console.status("starting the brokers (the first run downloads them)"):
        cluster = Cluster.up(_directory(directory), racks=racks, port=port, assignor_jar=jar)
    _say(f"{len(cluster.brokers)} brokers up in {time.monotonic() - began:.1f} s")
    typer.echo(cluster.bootstrap_servers)


@group.command()
def down(directory: Directory = None) -> None:
    """Stop every broker and remove its data."""
    cluster = Cluster.open(_directory(directory))
    cluster.down()
    _say(f"{len(cluster.brokers)} brokers stopped, and their data removed: {cluster.directory}")


@group.command()
def status(
    directory: Directory = None,
    as_json: AsJson = False,
) -> None:
    """Show which brokers are up; exit code 1 if one is not."""
    cluster = Cluster.open(_directory(directory))
    found = cluster.status()
    if as_json:
        brokers = [_as_dict(s, cluster) for s in found]
        typer.echo(json.dumps({"bootstrap_servers": cluster.bootstrap_servers, "brokers": brokers}))
    else:
        _print_table(found, cluster)
    if any(s.state != "up" for s in found):
        raise typer.Exit(1)


@group.command()
def kill(broker: BrokerId, directory: Directory = None) -> None:
    """Kill a broker with SIGKILL."""
    cluster = Cluster.open(_directory(directory))
    cluster.kill(broker)
    _say(f"broker {broker} killed; `{cluster_command(f'start {broker}', cluster.directory)}` starts it again")


@group.command()
def start(broker: BrokerId, directory: Directory = None) -> None:
    """Start a broker that was killed, on its old port and data."""
    began = time.monotonic()
    with Console(stderr=True).status(f"starting broker {broker}"):
        Cluster.open(_directory(directory)).start(broker)
    _say(f"broker {broker} up in {time.monotonic() - began:.1f} s")


def _say(line: str) -> None:
    """Print to stderr what was done, apart from the output that scripts read."""
    typer.echo(line, err=True)


def _directory(named: Path | None) -> Path:
    return named or Cluster.default_directory()


def _as_dict(status: BrokerStatus, cluster: Cluster) -> dict[str, object]:
    broker = status.broker
    return {
        "id": broker.id,
        "rack": broker.rack,
        "port": broker.port,
        "pid": status.pid,
        "state": status.state,
        "log": str(cluster.log(broker.id)),
    }


def _print_table(found: list[BrokerStatus], cluster: Cluster) -> None:
    table = _output.table("broker", "zone", "port", "process", "state", names=("zone",))
    for s in found:
        table.add_row(str(s.broker.id), s.broker.rack, str(s.broker.port), str(s.pid or "-"), s.state)
    console = _output.console()
    console.print(table)
    console.print(f"bootstrap {cluster.bootstrap_servers}\nlogs      {cluster.log(1).parent}", soft_wrap=True)
