"""`azimuth pause` and `azimuth resume`: stop the reading of topics, and continue it."""

import getpass
import json
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spark_sink.cli._fleet_file import load_fleet
from spark_sink.cli._option_values import AsJson, BrokersOrNone, Kafka, given, pairs
from spark_sink.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assignors.pauses import Pause

_Topics = Annotated[list[str], typer.Argument(metavar="TOPIC", help="Topics; of a fleet also <source>/<topic>.")]
_Group = Annotated[str | None, typer.Option(callback=given, help="Consumer group, or --group of jobs with claims.")]
_Fleet = Annotated[Path | None, typer.Option("--fleet", help="TOML file of a fleet, in place of brokers and group.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (pause, resume):
        app.command(command.__name__, rich_help_panel="Ingest into Delta or Iceberg")(command)


def pause(
    topics: _Topics,
    bootstrap_servers: BrokersOrNone = None,
    group: _Group = None,
    fleet: _Fleet = None,
    reason: Annotated[str, typer.Option(help="Why; shown with the pause.")] = "",
    kafka: Kafka = None,
    as_json: AsJson = False,
) -> None:
    """Stop reading topics; `sink`, `agent` and `claims run` follow within seconds, also after a restart."""
    from assignors.pauses import Pause

    here = Pause(at_ms=int(time.time() * 1000), by=f"{getpass.getuser()}@{socket.gethostname()}", reason=reason)
    _change(topics, _clusters(bootstrap_servers, group, fleet, kafka), here, as_json=as_json)


def resume(
    topics: _Topics,
    bootstrap_servers: BrokersOrNone = None,
    group: _Group = None,
    fleet: _Fleet = None,
    kafka: Kafka = None,
    as_json: AsJson = False,
) -> None:
    """Continue to read paused topics, from the positions in their tables."""
    _change(topics, _clusters(bootstrap_servers, group, fleet, kafka), None, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """A cluster with topics to pause.

    Attributes:
        source: its name in a fleet; empty without a fleet.
        group: the group whose readers follow the pauses.
        kafka: librdkafka's properties.
        wanted: returns those of a cluster's topics that the readers read, as far as it is known.
    """

    source: str
    group: str
    kafka: "Mapping[str, Any]"
    wanted: "Callable[[Sequence[str]], Sequence[str]]" = list

    def shown(self, topic: str) -> str:
        return f"{self.source}/{topic}" if self.source else topic


def _clusters(
    bootstrap_servers: str | None, group: str | None, fleet: Path | None, kafka: list[str] | None
) -> list[_Cluster]:
    if fleet is not None:
        if bootstrap_servers or group or kafka:
            raise typer.BadParameter("the file has brokers and group", param_hint="--fleet")
        settings = load_fleet(fleet, "pause")
        return [
            _Cluster(name, settings.name, settings.kafka(name), settings.source(name).wanted)
            for name in settings.sources
        ]
    if bootstrap_servers is None or group is None:
        raise typer.BadParameter("give --bootstrap-servers and --group, or --fleet FILE")
    from spark_sink.kafka.client_property_names import librdkafka_config

    properties = {"bootstrap.servers": bootstrap_servers, **pairs(kafka, "--kafka")}
    return [_Cluster("", group, librdkafka_config(properties))]


def _change(topics: "Sequence[str]", clusters: "Sequence[_Cluster]", wanted: "Pause | None", *, as_json: bool) -> None:
    """Find all topics first, so that a mistyped name changes nothing."""
    from assignors.pauses import PausedTopic, PausesPublisher
    from spark_sink.kafka.pause_watch import described

    states = {one.source: _state(one) for one in clusters if any(_within(name, one) for name in topics)}
    chosen = [_find(name, clusters, states) for name in dict.fromkeys(topics)]
    values = []
    for cluster, topic in chosen:
        before = states[cluster.source].paused.get(topic)
        changed = (before is None) != (wanted is None)
        if changed:
            PausesPublisher(cluster.kafka).publish(PausedTopic(cluster.group, topic), wanted)
        values.append({"topic": cluster.shown(topic), "paused": wanted is not None, "changed": changed})
        if as_json:
            continue
        if wanted is None:
            done = "its readers continue within seconds" if changed else "it was not paused"
        else:
            done = "its readers stop within seconds" if before is None else f"it is paused{described(before)}"
        typer.echo(f"{cluster.shown(topic)}: {done}")
    if as_json:
        typer.echo(json.dumps(values))


@dataclass(frozen=True, slots=True)
class _State:
    """The topics of a cluster, and the pauses of the group."""

    topics: frozenset[str]
    paused: "Mapping[str, Pause]"


def _state(cluster: _Cluster) -> _State:
    from assignors.pauses import PausesFeed
    from spark_sink.cli._reachable import reach
    from spark_sink.kafka.group_lag import admin, topic_names

    reach(cluster.kafka)
    with PausesFeed(cluster.kafka) as feed:
        feed.refresh(to_end=True)
        names = sorted(topic_names(admin(cluster.kafka)))
        return _State(frozenset(cluster.wanted(names)), feed.paused(cluster.group))


def _within(name: str, cluster: _Cluster) -> bool:
    return "/" not in name or name.startswith(f"{cluster.source}/")


def _find(name: str, clusters: "Sequence[_Cluster]", states: "Mapping[str, _State]") -> "tuple[_Cluster, str]":
    """Find the topic with a name; one that was deleted while it was paused may be resumed.

    Raises:
        OptionError: there is no such topic, or several clusters have one.
    """
    from assignors.settings import proposal

    topic = name.rpartition("/")[2]
    asked = [one for one in clusters if _within(name, one)]
    found = [one for one in asked if topic in states[one.source].topics or topic in states[one.source].paused]
    if len(found) == 1:
        return found[0], topic
    if found:
        raise OptionError(f"topic {name!r} is on several clusters: name it {found[0].shown(topic)}")
    known = sorted({one for cluster in asked for one in states[cluster.source].topics})
    proposed = proposal(topic, known)
    where = ", ".join(one.source or str(one.kafka["bootstrap.servers"]) for one in asked or clusters)
    raise OptionError(f"there is no topic {name!r} on {where}{f'; {proposed}' if proposed else ''}")
