"""A job as a process: built from its settings, run until a signal stops it."""

import contextlib
import functools
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry

from assignors.claims import PartitionClaims, check_claims
from assignors.clients import shown
from assignors.errors import ClaimsAwayError, FleetError
from assignors.fleet import Sighting, Source, ask_ids, sight
from assignors.scaling import WorkersRecord
from spark_sink.agent.progress_log import StartSteps
from spark_sink.agent.stop_signal import stop_on_signals
from spark_sink.claimed.caught_up import Ending
from spark_sink.claimed.header_samples import SampledFetch
from spark_sink.claimed.job_loop import ClaimedIngest
from spark_sink.claimed.job_metrics import JobMetrics
from spark_sink.claimed.job_parts import JobParts
from spark_sink.claimed.job_progress import Round
from spark_sink.claimed.job_settings import ClaimedSettings
from spark_sink.claimed.published_workers import FollowedNumbers
from spark_sink.fleet.commit_counts import CommitCounts
from spark_sink.fleet.group_offset_commits import OffsetHints
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.kafka.client_property_names import leaving_silent_leaders, librdkafka_config
from spark_sink.kafka.group_lag import admin
from spark_sink.kafka.partition_offsets import PartitionOffsets
from spark_sink.kafka.pause_watch import PausedTopics
from spark_sink.lake.iceberg.catalogs import refuse_unknown_catalog
from spark_sink.lake.ops_log.ops_counts import OpsCounts
from spark_sink.lake.ops_log.ops_writer import written
from spark_sink.monitoring.live import serve_metrics
from spark_sink.monitoring.logs.masked_secrets import Mask, secret_values
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import TopicPartition

log = logging.getLogger(__name__)

_LOOK_S = 0.1
_IDLE_S = 1.0  # longest wait for a request after a signal
_STALE_S = 60.0  # of a topic's lag, besides two visits by another job
_SHORTEST_POLL_S = 1.0  # a broker that is slow for a moment must not fail a round
_HOLDING_S = 8.0  # the same while partitions are held: their records are being written


def build(
    settings: ClaimedSettings,
    steps: StartSteps | None = None,
    observe: Callable[[Round], None] = lambda _: None,
    ops: CommitCounts | None = None,
) -> ClaimedIngest:
    """Create a job, and log each step of it.

    Args:
        settings: settings of the job.
        steps: logs the steps.
        observe: called after each round.
        ops: counts commits for an ops log; None without one.

    Raises:
        ClaimsError: the database's address is invalid, or its claims cannot be kept there; not if it is away.
        FleetError: neither topics nor a pattern, or no broker answers.
        OptionError: the options of an Iceberg table describe no catalog.
        SparkSinkError: Kafka's client refuses a property.
    """
    steps = steps or StartSteps(log=log)
    own = {"client.id": f"azimuth.{settings.owner or socket.gethostname()}.{settings.name}", **settings.kafka}
    kafka = librdkafka_config(own)
    source = Source(name=settings.name, kafka=kafka, topics=settings.topics, pattern=settings.pattern)
    _claims(settings, "not known yet").close()  # reports errors of the settings before waiting for a broker
    with contextlib.suppress(ClaimsAwayError):  # a server may come back; a file that is not a database is refused
        check_claims(settings.database, settings.claims_table)
    refuse_unknown_catalog(settings.table, settings.storage)
    topics = ClusterTopics(admin(kafka), source)
    steps.done(f"cluster {topics.cluster} at {kafka['bootstrap.servers']}: {topics.count} topics")
    claims = _claims(settings, topics.cluster)
    steps.done(f"claims are kept in table {settings.claims_table!r} of {shown(settings.database)}")
    # The client joins no group, but librdkafka's consumer queue needs a group name.
    named = {**own, "group.id": settings.name}
    queued = {"queued.max.messages.kbytes": str(settings.queue_kb), **named}
    reading = FetchSettings(
        kafka={**leaving_silent_leaders(queued), **queued},
        fail_on_data_loss=settings.fail_on_data_loss,
        poll_timeout_s=settings.poll_timeout_s,
        headers=settings.rows.headers,
    )
    numbers = _numbers(settings, kafka)

    def timeout_s(topics: Collection[str]) -> float | None:
        times = [one.poll_timeout_ms for topic, one in numbers().items() if topic in topics]
        given = [one / 1000 for one in times if one is not None]
        return max(min(given), _SHORTEST_POLL_S) if given else None

    return ClaimedIngest(
        settings,
        JobParts(
            claims=claims,
            writer=TableWriter(
                settings.table,
                settings.name,
                claims.owner,
                settings.storage,
                rows=settings.rows,
                ops=ops,
            ),
            logs=PartitionOffsets(SourceOptions(kafka=named, group=settings.name)),
            topics=topics.look,
            fetch=SampledFetch(reading, timeout_s=timeout_s),
            ids=topics.ids,
            paused=PausedTopics(kafka, settings.name),
            numbers=numbers,
            hint=_hints(settings, named),
        ),
        observe,
    )


def run(settings: ClaimedSettings) -> int:
    """Ingest until SIGTERM or SIGINT, or with `once` until all is read or the time is over; then disown and end.

    Returns:
        The exit code: an `Ending` with `once`, else 0.

    Raises:
        ClaimsError: the database's address is invalid.
        FleetError: no broker answers.
        OptionError: the port of the metrics is not available.
    """
    stop = stop_on_signals(functools.partial(log.info, "claims: stopping (%s)"))
    place = f"brokers {settings.kafka['bootstrap.servers']}, claims in {shown(settings.database)}"
    log.info("claims: job %s of group %r starts: %s", settings.owner or socket.gethostname(), settings.name, place)
    counts = None
    if settings.ops is not None:
        given = {"database": settings.database, "kafka": settings.kafka, "storage": settings.storage}
        counts = OpsCounts(Mask(secret_values({**given, "registry": settings.rows.value.registry})))
    agent = settings.owner or f"{socket.gethostname()}-{os.getpid()}"
    with written(settings.ops, counts, {"kind": "claims", "group_id": settings.name, "agent": agent}):
        return _Work(settings, stop, counts).end_within()


def count_errors(done: Round, ops: CommitCounts) -> None:
    """Count the errors of a round for the ops log."""
    if done.failed:
        ops.failed((), done.problem)
    for topic, error in done.refused.items():
        ops.failed({topic}, error)


class _Work:
    """A job in a thread of its own: a request to brokers that are away would keep the main thread from a signal."""

    def __init__(self, settings: ClaimedSettings, stop: threading.Event, counts: OpsCounts | None) -> None:
        self._settings = settings
        self._stop = stop
        self._job: ClaimedIngest | None = None
        self._error: BaseException | None = None
        self._ending: Ending | None = None
        self._began = time.monotonic()
        self._ops = CommitCounts(counts) if counts is not None else None
        self._metrics: JobMetrics | None = None
        if settings.metrics_port is not None:
            registry = CollectorRegistry()
            # A topic is claimed at least every `longest_s` by one of the jobs.
            self._metrics = JobMetrics(registry, stale_s=2 * settings.picking.longest_s + _STALE_S)
            serve_metrics(settings.metrics_port, registry)
        self._thread = threading.Thread(target=self._run, name="claims", daemon=True)

    def end_within(self) -> int:
        """Run the job; after a signal wait for its round while it holds partitions, otherwise for a moment.

        Returns:
            The exit code.

        Raises:
            BaseException: the job's error.
        """
        self._thread.start()
        while self._thread.is_alive() and not self._stop.is_set():
            self._thread.join(_LOOK_S)
            self._end_in_time()
        signalled = time.monotonic()
        while self._thread.is_alive():
            holds = self._job is not None and (self._job.holds or self._settings.once)
            if time.monotonic() - signalled > (_HOLDING_S if holds else _IDLE_S):
                ends = ": its partitions are free when their leases end" if holds else ""
                log.warning("claims: the job ends although a request has not been answered%s", ends)
                return self._code
            self._thread.join(_LOOK_S)
        if self._error is not None:
            raise self._error
        return self._code

    @property
    def _code(self) -> int:
        if not self._settings.once:
            return 0
        return Ending.OVER if self._ending is None else self._ending

    def _end_in_time(self) -> None:
        most = self._settings.max_runtime_s
        if most is not None and time.monotonic() - self._began >= most and not self._stop.is_set():
            log.info("claims: the time is over (%g s)", most)
            self._stop.set()

    def _observe(self, done: Round) -> None:
        if self._metrics is not None:
            self._metrics.note(done)
        if self._ops is not None:
            count_errors(done, self._ops)

    def _run(self) -> None:
        settings, steps = self._settings, StartSteps(log=log)
        try:
            self._job = job = build(settings, steps, self._observe, self._ops)
            owner = settings.owner or socket.gethostname()
            steps.done(f"job {owner} of group {settings.name!r} writes to {settings.table}")
            self._ending = job.run(self._stop)
        except BaseException as error:  # noqa: BLE001 -- raised in the main thread
            self._error = error


def _numbers(settings: ClaimedSettings, kafka: Mapping[str, Any]) -> Callable[[], Mapping[str, WorkersRecord]]:
    if settings.workers_topic is None:
        return dict
    return FollowedNumbers(kafka, settings.workers_topic, settings.name, settings.workers_redis)


def _hints(settings: ClaimedSettings, kafka: Mapping[str, Any]) -> Callable[[Mapping[TopicPartition, int]], None]:
    """Return what commits positions to the job's group in Kafka, where the autoscaler looks for them."""
    if settings.workers_topic is None:
        return lambda _: None
    # The client subscribes to nothing, so the group has no members, and every job may commit.
    config = {**librdkafka_config(kafka), "enable.auto.commit": False, "log_level": 2}
    return OffsetHints(Consumer(config), seated=True).commit


def _claims(settings: ClaimedSettings, cluster: str) -> PartitionClaims:
    return PartitionClaims(
        settings.database,
        cluster=cluster,
        owner=settings.owner,
        lease=settings.lease,
        picking=settings.picking,
        form=settings.form,
        table=settings.claims_table,
    )


class ClusterTopics:
    """The topics of a job's source; known topics stay while the cluster does not describe them.

    Args:
        admin: client of the cluster.
        source: selects the topics.

    Raises:
        FleetError: no broker answers.
    """

    def __init__(self, admin: AdminClient, source: Source) -> None:
        self._admin = admin
        self._source = source
        self._seen = sight(admin, source)

    @property
    def cluster(self) -> str:
        """Id of the cluster."""
        return self._seen.cluster

    @property
    def count(self) -> int:
        """Number of topics."""
        return len(self._seen.topics)

    def look(self) -> Sighting:
        """Request the topics from the cluster.

        Raises:
            FleetError: no broker answers, or the brokers belong to another cluster now.
        """
        seen = sight(self._admin, self._source, self._seen)
        if seen.cluster != self.cluster:
            raise FleetError(
                f"source {self._source.name!r}: {self._source.kafka['bootstrap.servers']} is cluster "
                f"{seen.cluster!r} now, and was {self.cluster!r}: start the job again"
            )
        self._seen = seen
        for problem in seen.problems:
            log.warning("claims: %s", problem)
        return seen

    def ids(self, names: Collection[str]) -> Callable[[], dict[str, str]]:
        """Request the current ids of topics, as `ask_ids` does."""
        return ask_ids(self._admin, self._source, names, self._seen.ids)
