"""Makes the readers of an agent's sources from its settings; loads what reads, decodes and writes records."""

import functools
from collections.abc import Mapping

from assignors.fleet import ClusterWatch
from spark_sink.fleet.commit_counts import CommitCounts
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.fleet.ingestion_without_spark import LightIngestion, Surroundings
from spark_sink.fleet.quarantine_counts import Quarantined
from spark_sink.fleet.reader_and_writer_threads import SourceReader
from spark_sink.fleet.reader_settings import ReaderParts, ReaderSettings
from spark_sink.fleet.received_bytes import BrokerZones
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.fleet.workers_in_force import WorkersNow
from spark_sink.lake.ops_log.ops_counts import OpsCounts


def light_ingestion(
    settings: FleetSettings, watches: Mapping[str, ClusterWatch], workers: WorkersNow, counts: OpsCounts | None
) -> LightIngestion:
    """Create the ingestion of an agent. The readers' threads start, create their clients, and wait for topics.

    Args:
        settings: settings of the agent.
        watches: its clusters, by source.
        workers: the settings of polls.
        counts: counts commits and errors for an ops log; None without one.
    """
    reading = ReaderSettings(
        agent=settings.agent,
        group=settings.name,
        kafka={name: settings.reading(name) for name in settings.sources},
        flush_s=settings.flush_s,
        buffer_bytes=settings.buffer_bytes,
        include_headers=settings.include_headers,
    )
    ops = {name: None if counts is None else CommitCounts(counts, name) for name in watches}
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
                lanes=settings.lane_count.of(name),
            ),
        )
        for name, watch in watches.items()
    }
    return LightIngestion(readers, _surroundings(settings, readers))


def _surroundings(settings: FleetSettings, readers: Mapping[str, SourceReader]) -> Surroundings:
    def tables() -> set[str]:
        return {table for reader in readers.values() for table in reader.tables()}

    return Surroundings(
        zone=settings.zone,
        price_per_gb=settings.price_per_gb,
        zones={name: BrokerZones(settings.kafka(name)) for name in settings.sources},
        quarantined=Quarantined(tables, settings.table_storage),
    )


def _writer(settings: FleetSettings, source: str, ops: CommitCounts | None) -> TableWriter:
    address, storage = settings.address(source), settings.table_storage
    return TableWriter(address, settings.name, settings.agent, storage, rows=settings.rows(source), ops=ops)
