"""`azimuth plan`: the plan of each assignor for a live group, its current owners, and where a producer's records go."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from spark_sink.cli._error_sentences import reasoned
from spark_sink.cli._long_steps import long_step
from spark_sink.cli._option_values import AsJson, Brokers, Kafka, counted, given, pairs
from spark_sink.cli._option_values import workers as read_workers

if TYPE_CHECKING:
    from assignors import Member
    from assignors.comparison import LiveGroup, Outcome, Settings


_NAMED = 3
_FREE = "(no member)"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", rich_help_panel="Look and check (changes nothing)")(plan)


def plan(
    bootstrap_servers: Brokers,
    group: Annotated[str | None, typer.Option(callback=given, help="Consumer group to look at.")] = None,
    assignor: Annotated[
        list[str] | None,
        typer.Option(help="Only this one of range, round robin, sticky, hrw, shuffled; may be repeated."),
    ] = None,
    workers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K|TOPIC=K",
            help="hrw: at most K members read a topic; TOPIC=K, repeated, for topics or patterns, '*=K' for others.",
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="hrw: allowed distance of a load from the fair share.")] = 0.05,
    leaving: Annotated[
        str | None, typer.Option(help="For `if one leaves`: the member, by name or member id; by default the fullest.")
    ] = None,
    explain: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Explain which members hrw lets read this topic.")
    ] = None,
    owners: Annotated[bool, typer.Option("--owners", help="List who owns what now, without plans.")] = False,
    producer: Annotated[
        str | None,
        typer.Option(callback=given, metavar="ZONE", help="Forecast where records of a producer in this zone go."),
    ] = None,
    topic: Annotated[str | None, typer.Option(callback=given, help="With --producer: its topic, or a pattern.")] = None,
    kafka: Kafka = None,
    as_json: AsJson = False,
) -> None:
    """Compare the assignors on a live group (--group), or forecast a producer (--producer). Changes nothing."""
    if (group is None) == (producer is None):
        raise typer.BadParameter("give either --group or --producer", param_hint="--group")
    if group is not None and topic is not None:
        raise typer.BadParameter("it belongs to --producer; with --group give --explain TOPIC", param_hint="--topic")
    if owners and (producer is not None or explain is not None):
        raise typer.BadParameter("it needs --group, and no --explain", param_hint="--owners")
    properties = {**pairs(kafka, "--kafka"), "bootstrap.servers": bootstrap_servers}
    if producer is not None:
        _producer(properties, producer, topic, as_json=as_json)
        return
    from assignors import comparison
    from spark_sink.cli._reachable import reach
    from spark_sink.kafka.client_property_names import librdkafka_config

    _check(assignor, comparison.STRATEGIES)
    settings = comparison.Settings(workers=read_workers(workers), epsilon=epsilon)
    _check_settings(settings)
    reach(properties)
    with reasoned(properties), long_step(f"looking at group {group}"):
        settings_here = _client_settings(bootstrap_servers, properties)
        found = comparison.read_group(bootstrap_servers, str(group), settings_here, librdkafka_config(properties))
    leaving = _leaving(leaving, found.members)
    _warn_of_gaps(found)
    if owners:
        typer.echo(rendered(found, as_json=as_json))
        return
    if explain is not None:
        _explain(found, settings, explain, as_json=as_json)
        return
    with long_step("asking the assignors") as say:
        outcomes = comparison.compare(
            found.topics,
            found.members,
            strategies=assignor or comparison.STRATEGIES,
            settings=settings,
            sizes=found.sizes,
            leaving=leaving,
            started=lambda name: say(f"asking {name}"),
        )
    if as_json:
        value = {"group": found.name, "state": found.state, "outcomes": [asdict(o) for o in outcomes]}
        typer.echo(json.dumps({**value, "not_described": list(found.not_described)}))
        return
    _print(found, outcomes, [m for m in found.members if m.rack])


def _warn_of_gaps(group: "LiveGroup") -> None:
    """Warn if the plan has not all topics of the group: it would look complete."""
    if missing := group.not_described:
        named = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
        typer.echo(
            f"azimuth: {len(missing)} of {len(missing) + len(group.topics)} topics of group {group.name!r} are not in "
            f"the plan: there is no such topic, or this user may not describe it ({named}): allow it DESCRIBE",
            err=True,
        )


def _producer(properties: dict[str, str], zone: str, topic: str | None, *, as_json: bool) -> None:
    from producer.forecast import render, render_all
    from spark_sink.cli._plan_producer import producer_forecasts
    from spark_sink.cli._reachable import reach

    if topic is None:
        raise typer.BadParameter("--producer needs it", param_hint="--topic")
    reach(properties)
    found = producer_forecasts(properties, zone, topic)
    if as_json:  # one topic's name gives one object, a pattern a list
        values = [{**asdict(one), "skew": one.skew} for one in found]
        typer.echo(json.dumps(values[0] if found[0].topic == topic else values, default=list))
    else:
        typer.echo(render(found[0]) if found[0].topic == topic else render_all(found))


def _print(group: "LiveGroup", outcomes: Sequence["Outcome"], racked: Sequence[object]) -> None:
    partitions = sum(topic.partitions for topic in group.topics)
    typer.echo(
        f"{group.name}: {group.state}, {group.strategy}; {counted(len(group.members), 'member')} from "
        f"{counted(len(set(group.hosts.values())), 'client address', 'es')}, "
        f"{counted(len(group.topics), 'topic')}, {counted(partitions, 'partition')}"
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("strategy", no_wrap=True)
    for column in ("max", "max/mean", "idle", "connec-\ntions", "off-rack", "moves\nnow", "if one\nleaves"):
        table.add_column(column, justify="right")
    for one in outcomes:
        if one.failure:
            table.add_row(one.strategy, *["-"] * 7)
            continue
        away = "?" if not racked else str(one.off_rack)
        if racked and one.off_rack_bytes is not None:
            away += f" ({one.off_rack_bytes / 1e6:.1f} MB)"
        leave = "-" if one.moved_on_leave is None else f"{one.moved_on_leave} of {one.leaves}"
        moves = "-" if one.strategy == "now" else str(one.moved)
        numbers = (str(one.most), f"{one.skew:.2f}", str(one.idle), str(one.connections))
        table.add_row(one.strategy, *numbers, away, moves, leave)
    Console(width=80).print(table)
    for one in outcomes:
        if one.failure:
            typer.echo(f"{one.strategy} fails on this group: {one.failure}")
    if group.protocol == "consumer":
        typer.echo(
            "the broker assigns (KIP-848): members count as subscribed to all of the group's topics, and their racks "
            "are unknown"
        )
    elif not racked:
        typer.echo("off-rack is unknown: no member says its rack (client.rack, or rack= of the assignor)")
    typer.echo("connections: pairs of member and topic; if one leaves: partitions that move, and how many it held")
    if "hrw" in group.strategy:  # else the group's own assignor would seem to move partitions of a group at rest
        typer.echo(
            "hrw is planned with --workers and --epsilon: the settings of the group's members are not visible here"
        )


def _explain(group: "LiveGroup", settings: "Settings", topic: str, *, as_json: bool) -> None:
    from assignors import plan as make_plan

    made = make_plan(group.topics, group.members, workers=settings.workers, epsilon=settings.epsilon)
    candidates = made.explain(topic)
    if not candidates:
        raise typer.BadParameter(f"{topic!r}: no member of {group.name!r} subscribed to it", param_hint="--explain")
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in candidates]))
        return
    for one in candidates:
        typer.echo(f"{one.rank:>3}  {one.identity}  {one.reason}")


def _check(asked: Sequence[str] | None, known: Sequence[str]) -> None:
    for one in asked or ():
        if one not in known:
            raise typer.BadParameter(f"{one!r}, need one of {', '.join(known)}", param_hint="--assignor")


def _check_settings(settings: "Settings") -> None:
    from assignors import plan as make_plan

    make_plan((), (), workers=settings.workers, epsilon=settings.epsilon)


def _leaving(asked: str | None, members: Sequence["Member"]) -> str | None:
    """Return the member id of the member that leaves: a person knows the name, which survives a restart."""
    if asked is None:
        return None
    found = next((one.id for one in members if asked in {one.id, one.identity}), None)
    if found is None:
        names = ", ".join(one.identity for one in members)
        raise typer.BadParameter(f"{asked!r} is none of the members {names}", param_hint="--leaving")
    return found


def _client_settings(servers: str, properties: Mapping[str, str]) -> dict[str, object]:
    """Translate Java's and librdkafka's properties for kafka-python; properties of consumers only are left out."""
    from kafka import KafkaAdminClient

    from spark_sink.kafka.client_property_names import kafka_python_config

    named = kafka_python_config({**properties, "bootstrap.servers": servers})
    return {name: value for name, value in named.items() if name in KafkaAdminClient.DEFAULT_CONFIG}


if TYPE_CHECKING:
    from assignors.comparison import LiveGroup


def owners(group: "LiveGroup") -> dict[str, dict[str, list[int]]]:
    """Return the partitions that each member owns, by member and topic, sorted; members without any stay in.

    A member's key is its `group.instance.id`, or the name of its agent; else its member id. Partitions of the group's
    topics that no member owns, as during a rebalance, are under `(no member)`.
    """
    free = {(topic.name, number) for topic in group.topics for number in range(topic.partitions)}
    found: dict[str, dict[str, list[int]]] = {}
    for member in sorted(group.members, key=lambda one: (one.identity, one.id)):
        # Two members with one name are a fault that the list must show: the second gets its member id.
        name = member.id if member.identity in found else member.identity
        found[name] = _by_topic(member.owned)
        free -= member.owned
    return found | ({_FREE: _by_topic(free)} if free else {})


def rendered(group: "LiveGroup", *, as_json: bool) -> str:
    """Return the owners as text, or as one JSON object."""
    found = owners(group)
    if as_json:
        return json.dumps({"group": group.name, "state": group.state, "owners": found})
    lines = []
    for member, topics in found.items():
        count = sum(map(len, topics.values()))
        lines.append(f"{member}: {counted(count, 'partition')} of {counted(len(topics), 'topic')}")
        lines += [f"  {topic}: {', '.join(map(str, numbers))}" for topic, numbers in topics.items()]
    return "\n".join(lines)


def _by_topic(partitions: "set[tuple[str, int]] | frozenset[tuple[str, int]]") -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found
