"""Metrics of an agent for Prometheus, from the table's log, its reader's assignment and the ends of its partitions.

The commits run in one of Spark's processes, so they are counted from their notes in the log.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from assignors import AssignorError, ReceivedTraffic
from assignors.clients import LogOffsets, kafka_python_settings
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.commit_notes import Notes
from spark_sink.errors import SparkSinkError
from spark_sink.kafka.group_lag import by_topic
from spark_sink.lake.positions_in_delta_log import positions
from spark_sink.monitoring.live import serve_metrics
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.ranges.lag_seconds import UnreadAges
from spark_sink.source.ownership_telemetry import AssignmentCounts, AssignmentFile
from spark_sink.source.received_traffic import QueryTraffic

_INTERVAL_S = 5.0
_FORGET_S = 60.0

_log = structlog.get_logger("azimuth.metrics")


class Metrics:
    """Counters and gauges of one agent.

    Args:
        registry: the registry of the metrics.
        held: returns the agent's assignment at each update.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        held: Callable[[], AssignmentCounts] = AssignmentCounts,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self.commits = Counter("azimuth_commits", "Commits of this agent.", registry=registry)
        self.rows = Counter("azimuth_rows", "Rows that this agent committed.", registry=registry)
        self.size = Counter("azimuth_bytes", "Bytes of the data files that this agent committed.", registry=registry)
        self.left_out = Counter("azimuth_rows_left_out", "Rows that were in the table already.", registry=registry)
        self.quarantined = Counter("azimuth_quarantined", "Records put in quarantine.", registry=registry)
        self.conflicts = Counter("azimuth_commit_conflicts", "Times another writer was faster.", registry=registry)
        self.freshness = Gauge(
            "azimuth_freshness_seconds", "Age of the newest record when it was committed.", registry=registry
        )
        self.generation = Gauge(
            "azimuth_generation", "Generation of the group; each rebalance raises it.", registry=registry
        )
        self.generation.set_function(lambda: held().generation)
        self.partitions = Gauge("azimuth_partitions", "Partitions that this agent holds.", registry=registry)
        self.partitions.set_function(lambda: held().partitions)
        self.lag = Gauge("azimuth_lag_records", "Records behind, by topic.", ["topic"], registry=registry)
        self.lag_seconds = Gauge(
            "azimuth_lag_seconds", "Age of the oldest unread record, by topic.", ["topic"], registry=registry
        )
        self.received_bytes = Counter(
            "azimuth_received_bytes",
            "Bytes of keys and values that brokers sent, by the zone of the broker.",
            ["topic", "zone"],
            registry=registry,
        )
        self.received_records = Counter(
            "azimuth_received_records", "Records that brokers sent.", ["topic", "zone"], registry=registry
        )
        self._reported_at: dict[str, float] = {}

    def committed(self, note: Mapping[str, Any]) -> None:
        """Count the note of one commit."""
        self.commits.inc()
        self.conflicts.inc(note.get("conflicts", 0))
        if note.get("kind") == "quarantine":
            self.quarantined.inc(note["rows"])
            return
        self.rows.inc(note.get("rows", 0))
        self.size.inc(note.get("bytes", 0))
        self.left_out.inc(note.get("rows_left_out", 0))
        if note.get("age_s") is not None:
            self.freshness.set(note["age_s"])

    def received(self, fresh: ReceivedTraffic) -> None:
        """Count what the tasks received since the last call."""
        for (topic, zone), count in fresh.topics.items():
            self.received_bytes.labels(topic, zone).inc(count.bytes)
            self.received_records.labels(topic, zone).inc(count.records)

    def lagging(self, lags: Mapping[str, tuple[int, float]]) -> None:
        """Set the lag in records and in seconds, by topic; drop a topic without data for a minute.

        Such a topic was deleted, or no broker answers: an old number would look current, and names would accumulate.
        """
        now = self._clock()
        for topic, (records, seconds) in lags.items():
            self.lag.labels(topic).set(records)
            self.lag_seconds.labels(topic).set(seconds)
            self._reported_at[topic] = now
        for topic in [topic for topic, at in self._reported_at.items() if now - at >= _FORGET_S]:
            del self._reported_at[topic]
            self.lag.remove(topic)
            self.lag_seconds.remove(topic)


def serve(settings: AgentSettings, holding: Path, traffic: Path) -> threading.Event:
    """Serve an agent's metrics until the returned event is set.

    Args:
        settings: settings with a port.
        holding: file with the assignment of the agent's reader.
        traffic: folder with what its tasks received.

    Raises:
        OptionError: the port is not available.
    """
    registry = CollectorRegistry()
    metrics = Metrics(registry, AssignmentFile(holding).read)
    port = settings.metrics_port or 0
    server = serve_metrics(port, registry)
    ended = threading.Event()
    rack = settings.rack

    def run() -> None:
        notes = Notes(settings)
        received = QueryTraffic(traffic, settings.admin_options() | ({"client.rack": rack} if rack else {}))
        logs: LogOffsets | None = None
        ages: UnreadAges | None = None
        with contextlib.suppress(SparkSinkError, OSError, ValueError):  # the next update reports it, if it persists
            for note in notes.read():
                metrics.committed(note)
        while not ended.wait(_INTERVAL_S):
            try:
                for note in notes.read():
                    metrics.committed(note)
                metrics.received(received.fresh())
                known = positions(settings.tables, settings.group, settings.table_storage)
                logs = logs or LogOffsets.connect(kafka_python_settings(settings.admin_options()))
                ages = ages or UnreadAges(partial(_at_times, logs))
                ends = {TopicPartition(*key): at for key, at in logs.ends(known, _INTERVAL_S).items()}
                metrics.lagging(lags(known, ends, ages))
            except (AssignorError, SparkSinkError, OSError, ValueError) as error:
                _log.warning("metrics are not up to date", error=str(error))
        server.shutdown()
        server.server_close()

    threading.Thread(target=run, name="metrics", daemon=True).start()
    return ended


def lags(
    positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], ages: UnreadAges
) -> dict[str, tuple[int, float]]:
    """Add up the lag of each topic.

    Args:
        positions: the next offset to read, by partition.
        ends: ends of the logs.
        ages: earlier observations.

    Returns:
        Lag in records, and the age of the oldest unread record in seconds, by topic.
    """
    ages.keep(positions)
    seconds = ages.look(positions, ends)
    return {one.topic: (one.lag_records, seconds[one.topic]) for one in by_topic(positions, ends)}


def _at_times(logs: LogOffsets, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
    return {TopicPartition(*key): at for key, at in logs.at_times(dict(times_ms.items()), _INTERVAL_S).items()}
