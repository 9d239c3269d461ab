"""`azimuth load`: the demo's flights, produced to any cluster."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from spark_sink.cli._long_steps import long_step
from spark_sink.cli._option_values import Kafka, given, pairs, servers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_sink.demo.producing import Loader


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("load", rich_help_panel="Try on this machine")(load)


def load(
    servers: Annotated[
        str, typer.Option("--bootstrap-servers", callback=servers, help="Kafka brokers, host:port by commas.")
    ],
    zones: Annotated[
        str, typer.Option(callback=given, help="A producer in each of these, by commas.")
    ] = "az-a,az-b,az-c",
    flights: Annotated[
        int | None, typer.Option(min=1, max=336_776, help="Number of flights, the first ones.", show_default="all")
    ] = None,
    replicas: Annotated[int, typer.Option(min=1, help="Of each topic that is created.")] = 3,
    kafka: Kafka = None,
) -> None:
    """Produce the demo's flights: 336,776 records to 224 topics, each from a zone to a leader in the same zone.

    Topics that exist already are used as they are.
    """
    from spark_sink.cli._reachable import reach
    from spark_sink.demo.flights import PARTITIONS, load_flights
    from spark_sink.demo.producing import PRODUCER_SETTINGS
    from spark_sink.demo.topics import create_topics
    from spark_sink.kafka.client_property_names import librdkafka_config

    client = librdkafka_config(pairs(kafka, "--kafka"))
    reach({**client, "bootstrap.servers": servers})
    there = _existing(servers, client)
    records = load_flights().slice(0, flights)
    topics = {str(name) for name in records.column("topic").unique().to_pylist()}
    with long_step(f"creating {len(topics - there)} topics"):
        create_topics(servers, topics - there, partitions=PARTITIONS, replicas=replicas, config={}, client=client)
    settings = {**PRODUCER_SETTINGS, **client}
    with Progress(console=Console(stderr=True)) as bars, _loader(servers, zones, settings) as loader:
        step = bars.add_task("producing", total=records.num_rows)
        loader.send(records, 0, lambda count: bars.advance(step, count))
        loader.flush()
        shipped = loader.shipment()
    typer.echo(
        f"{shipped.records} records in {len(topics)} topics, {shipped.cross_zone_share:.1%} of the bytes to other zones"
    )


def _loader(servers: str, zones: str, settings: "Mapping[str, Any]") -> "Loader":
    from confluent_kafka import KafkaException

    from spark_sink.demo.producing import Loader
    from spark_sink.errors import OptionError

    try:
        return Loader(servers, zones.split(","), settings)
    except KafkaException as error:  # each property is valid, but not their combination
        raise OptionError(f"Kafka client properties: {error.args[0].str()}; check --kafka") from error


def _existing(servers: str, client: "Mapping[str, Any]") -> set[str]:
    from spark_sink.kafka.group_lag import admin

    return set(admin({**client, "bootstrap.servers": servers}).list_topics(timeout=30).topics)
