"""An agent as a process: built from its settings, run until a signal stops it."""

import contextlib
import functools
import logging
import threading
from collections.abc import Mapping

from assignors.fleet import (
    Agent,
    AgentParts,
    ClusterWatch,
    FleetAgent,
    KafkaMembers,
    Members,
    RedisMembers,
    StaticMembers,
    Witness,
    any_answers,
)
from assignors.scaling import WorkersFeed
from spark_sink.agent.stop_signal import stop_on_signals
from spark_sink.errors import OptionError
from spark_sink.fleet.commit_counts import CommitCounts
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.fleet.ingestion_without_spark import LightIngestion, Surroundings
from spark_sink.fleet.periodic_reports import start_reports, write_status
from spark_sink.fleet.quarantine_counts import Quarantined
from spark_sink.fleet.reader_settings import ReaderParts, ReaderSettings
from spark_sink.fleet.received_bytes import BrokerZones
from spark_sink.fleet.settings_tables import RedisMembership, StaticMembership
from spark_sink.fleet.source_reader import SourceReader
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.fleet.whole_fleet import WholeFleet
from spark_sink.fleet.workers_in_force import WorkersNow
from spark_sink.kafka.client_property_names import kafka_python_config
from spark_sink.kafka.pause_watch import PausedTopics
from spark_sink.lake.ops_log.ops_counts import OpsCounts
from spark_sink.lake.ops_log.ops_writer import written
from spark_sink.monitoring.live import Access, LiveServer
from spark_sink.monitoring.logs.masked_secrets import Mask, secret_values

log = logging.getLogger(__name__)

_HAND_OVER_S = 4.0
"""Enough for a beat of the membership and the join of a consumer; the end of an agent takes this much longer."""


def run(settings: FleetSettings, http: tuple[str, int] | None = None, access: Access | None = None) -> None:
    """Ingest until SIGTERM or SIGINT, then leave cleanly.

    Args:
        settings: settings of the agent.
        http: address of the live page; None for no page.
        access: which requests the page answers; all by default.

    Raises:
        FleetError: the settings contradict each other.
        OptionError: the address of the page is not available.
    """
    stop = stop_on_signals(functools.partial(log.info, "fleet: stopping (%s)"))
    counts = None if settings.ops is None else OpsCounts(Mask(secret_values(settings.model_dump())))
    agent = build(settings, counts)
    columns = {"kind": "fleet", "group_id": settings.name, "agent": settings.agent}
    with written(settings.ops, counts, columns), contextlib.ExitStack() as served:
        if http is not None:
            whole = WholeFleet(settings, agent)
            page = LiveServer(
                http, lambda: {**agent.status(), "owners": agent.owners()}, access or Access(), whole.value
            )
            live = served.enter_context(page)
            log.info("fleet: live page at %s", live.url)
        _ingest(agent, settings, stop)


def _ingest(agent: FleetAgent, settings: FleetSettings, stop: threading.Event) -> None:
    reports = start_reports(agent.status, settings.status_file, stop)
    agent.run(stop)
    for thread in reports:
        thread.join()
    if settings.status_file is not None:
        with contextlib.suppress(OSError):  # already reported
            write_status(settings.status_file, agent.status())
    log.info("fleet: agent %r has ended", settings.agent)


def build(settings: FleetSettings, counts: OpsCounts | None = None) -> FleetAgent:
    """Create an agent. Only the readers' threads start, and wait for topics; there are no connections yet.

    Args:
        settings: settings of the agent.
        counts: counts commits and errors for an ops log; None without one.

    Raises:
        FleetError: the settings contradict each other.
    """
    agents: list[FleetAgent] = []

    def wake() -> None:
        for one in agents:
            one.wake()

    watches = {name: ClusterWatch(settings.source(name), settings.discover_s, wake) for name in settings.sources}
    reading = ReaderSettings(
        agent=settings.agent,
        group=settings.name,
        kafka={name: settings.reading(name) for name in settings.sources},
        flush_s=settings.flush_s,
        buffer_bytes=settings.buffer_bytes,
        include_headers=settings.include_headers,
    )
    ops = {name: None if counts is None else CommitCounts(counts, name) for name in watches}
    feed = None
    if settings.workers.topic is not None:
        feed = WorkersFeed(settings.kafka(settings.home), settings.workers.topic)
    workers = WorkersNow.of(settings, feed, wake)
    readers = {
        name: SourceReader(
            name,
            reading,
            ReaderParts(
                writer=_writer(settings, name, ops[name]),
                ids=watch.ids,
                look_again=watch.look_now,
                ops=ops[name],
                polls=functools.partial(workers.polls, name),
            ),
        )
        for name, watch in watches.items()
    }
    found = list(watches.values())
    pauses = {name: PausedTopics(settings.kafka(name), settings.name) for name in settings.sources}
    agents.append(
        FleetAgent(
            AgentParts(
                agent=settings.agent_id,
                members=members(settings, lambda: any_answers(found)),
                watches=found,
                ingestion=LightIngestion(readers, _surroundings(settings, readers)),
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


def _surroundings(settings: FleetSettings, readers: Mapping[str, SourceReader]) -> Surroundings:
    def tables() -> set[str]:
        return {table for reader in readers.values() for table in reader.tables()}

    return Surroundings(
        zone=settings.zone,
        price_per_gb=settings.price_per_gb,
        zones={name: BrokerZones(settings.kafka(name)) for name in settings.sources},
        quarantined=Quarantined(tables, settings.table_storage),
    )


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
    home = settings.sources[settings.home]
    try:
        client = f"azimuth.{settings.agent}.membership"
        kafka = kafka_python_config({"bootstrap.servers": home.bootstrap_servers, "client.id": client, **home.kafka})
    except ValueError as error:
        raise OptionError(f"source {settings.home!r}: kafka: {error}") from error
    kafka.pop("enable_auto_commit", None)
    return KafkaMembers(settings.agent_id, kafka, settings.name, settings.session, witness)


def _writer(settings: FleetSettings, source: str, ops: CommitCounts | None) -> TableWriter:
    address, storage = settings.address(source), settings.table_storage
    return TableWriter(address, settings.name, settings.agent, storage, rows=settings.rows(source), ops=ops)
