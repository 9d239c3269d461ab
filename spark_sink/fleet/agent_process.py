"""An agent as a process: built from its settings, run until a signal stops it."""

import contextlib
import functools
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from assignors.fleet import (
    Agent,
    AgentParts,
    ClusterWatch,
    FleetAgent,
    Ingestion,
    Members,
    RedisMembers,
    StaticMembers,
    Witness,
    any_answers,
)
from assignors.scaling import WorkersFeed
from spark_sink.agent.stop_signal import stop_on_signals
from spark_sink.errors import OptionError
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.fleet.later_ingestion import LaterIngestion
from spark_sink.fleet.periodic_reports import start_reports, write_status
from spark_sink.fleet.settings_tables import RedisMembership, StaticMembership
from spark_sink.fleet.workers_in_force import WorkersNow
from spark_sink.kafka.client_property_names import kafka_python_config
from spark_sink.kafka.pause_watch import PausedTopics
from spark_sink.monitoring.logs.masked_secrets import Mask, secret_values

if TYPE_CHECKING:  # these load what reads, writes and serves: see `LaterIngestion`
    from spark_sink.lake.ops_log.ops_counts import OpsCounts
    from spark_sink.monitoring.live import Access

log = logging.getLogger(__name__)

_HAND_OVER_S = 4.0
"""Enough for a beat of the membership and the join of a consumer; the end of an agent takes this much longer."""


def run(
    settings: FleetSettings,
    http: tuple[str, int] | None = None,
    access: "Access | None" = None,
    prepare: Callable[[], object] = lambda: None,
) -> None:
    """Ingest until SIGTERM or SIGINT, then leave cleanly.

    Args:
        settings: settings of the agent.
        http: address of the live page; None for no page.
        access: which requests the page answers; all by default.
        prepare: called before the readers are made, in their thread.

    Raises:
        FleetError: the settings contradict each other.
        OptionError: the address of the page is not available.
    """
    stop = stop_on_signals(functools.partial(log.info, "fleet: stopping (%s)"))
    counts = None if settings.ops is None else _ops_counts(settings)
    agent = build(settings, counts, stop.set, prepare)
    with contextlib.ExitStack() as opened:
        if counts is not None:
            from spark_sink.lake.ops_log.ops_writer import written  # noqa: PLC0415 -- loads Arrow's files

            columns = {"kind": "fleet", "group_id": settings.name, "agent": settings.agent}
            opened.enter_context(written(settings.ops, counts, columns))
        if http is not None:
            _serve(opened, agent, settings, http, access)
        _ingest(agent, settings, stop)


def _ops_counts(settings: FleetSettings) -> "OpsCounts":
    from spark_sink.lake.ops_log.ops_counts import OpsCounts  # noqa: PLC0415 -- loads Arrow's functions

    return OpsCounts(Mask(secret_values(settings.model_dump())))


def _serve(
    opened: contextlib.ExitStack,
    agent: FleetAgent,
    settings: FleetSettings,
    http: tuple[str, int],
    access: "Access | None",
) -> None:
    from spark_sink.fleet.whole_fleet import WholeFleet  # noqa: PLC0415 -- only pages need it
    from spark_sink.monitoring.live import Access, LiveServer  # noqa: PLC0415 -- as above

    whole = WholeFleet(settings, agent)
    page = LiveServer(http, lambda: {**agent.status(), "owners": agent.owners()}, access or Access(), whole.value)
    live = opened.enter_context(page)
    log.info("fleet: live page at %s", live.url)


def _ingest(agent: FleetAgent, settings: FleetSettings, stop: threading.Event) -> None:
    reports = start_reports(agent.status, settings.status_file, stop)
    agent.run(stop)
    for thread in reports:
        thread.join()
    if settings.status_file is not None:
        with contextlib.suppress(OSError):  # already reported
            write_status(settings.status_file, agent.status())
    log.info("fleet: agent %r has ended", settings.agent)


def build(
    settings: FleetSettings,
    counts: "OpsCounts | None" = None,
    failed: Callable[[], object] = lambda: None,
    prepare: Callable[[], object] = lambda: None,
) -> FleetAgent:
    """Create an agent. It looks at its clusters already; its readers start in the background, and wait for topics.

    Args:
        settings: settings of the agent.
        counts: counts commits and errors for an ops log; None without one.
        failed: called if the readers cannot be made; `FleetAgent.run` raises the error when it ends.
        prepare: as for `run`.

    Raises:
        FleetError: the settings contradict each other, or librdkafka refuses a property of a source.
    """
    agents: list[FleetAgent] = []

    def wake() -> None:
        for one in agents:
            one.wake()

    watches = {name: ClusterWatch(settings.source(name), settings.discover_s, wake) for name in settings.sources}
    for watch in watches.values():
        watch.start()  # lists its cluster while kafka-python loads
    feed = None
    if settings.workers.topic is not None:
        feed = WorkersFeed(settings.kafka(settings.home), settings.workers.topic)
    workers = WorkersNow.of(settings, feed, wake)

    def ingestion() -> Ingestion:
        prepare()
        from spark_sink.fleet.readers_of_sources import light_ingestion  # noqa: PLC0415 -- see `LaterIngestion`

        return light_ingestion(settings, watches, workers, counts)

    found = list(watches.values())
    pauses = {name: PausedTopics(settings.kafka(name), settings.name) for name in settings.sources}
    agents.append(
        FleetAgent(
            AgentParts(
                agent=settings.agent_id,
                members=members(settings, lambda: any_answers(found)),
                watches=found,
                ingestion=LaterIngestion(ingestion, failed),
                workers=workers,
                configured=settings.fleet_workers,
                lanes=settings.lane_count,
                balance=settings.placement,
                prefer_zones=settings.prefer_zones,
                # In a static fleet no agent takes over the topics of another.
                hand_over_s=0.0 if isinstance(settings.membership, StaticMembership) else _HAND_OVER_S,
                growth_s=settings.discover_s + _HAND_OVER_S,
                paused=lambda source: pauses[source](),
            )
        )
    )
    return agents[0]


def members(settings: FleetSettings, witness: Witness | None = None) -> Members:
    """Create the membership of an agent.

    Raises:
        FleetError: redis-py is missing, or a static fleet does not list the agent.
        OptionError: a property of the home cluster is invalid.
    """
    given = settings.membership
    if isinstance(given, StaticMembership):
        return StaticMembers(settings.agent_id, tuple(Agent(one.id, one.capacity, one.zone) for one in given.agents))
    if isinstance(given, RedisMembership):
        return RedisMembers(settings.agent_id, given.url, settings.name, settings.session, witness)
    from assignors.fleet import KafkaMembers  # noqa: PLC0415 -- loads kafka-python

    home = settings.sources[settings.home]
    try:
        client = f"azimuth.{settings.agent}.membership"
        kafka = kafka_python_config({"bootstrap.servers": home.bootstrap_servers, "client.id": client, **home.kafka})
    except ValueError as error:
        raise OptionError(f"source {settings.home!r}: kafka: {error}") from error
    kafka.pop("enable_auto_commit", None)
    return KafkaMembers(settings.agent_id, kafka, settings.name, settings.session, witness)
