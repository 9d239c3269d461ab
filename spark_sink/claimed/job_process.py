"""A job as a process: built from its settings, run until a signal stops it."""

import logging
import signal
import socket
import threading
from collections.abc import Callable, Collection
from types import FrameType

from confluent_kafka.admin import AdminClient

from assignors.claims import PartitionClaims
from assignors.clients import shown
from assignors.errors import FleetError
from assignors.fleet import Sighting, Source, ask_ids, sight
from spark_sink.agent.progress_log import StartSteps
from spark_sink.claimed.header_samples import SampledFetch
from spark_sink.claimed.job_loop import ClaimedIngest
from spark_sink.claimed.job_parts import Parts
from spark_sink.claimed.job_settings import ClaimedSettings
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.kafka.client_properties import librdkafka_config
from spark_sink.kafka.group_lag import admin
from spark_sink.kafka.partition_offsets import PartitionOffsets
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.options.source_options import SourceOptions

log = logging.getLogger(__name__)


def build(settings: ClaimedSettings, steps: StartSteps | None = None) -> ClaimedIngest:
    """Create a job, and log each step of it.

    Raises:
        ClaimsError: the database's address is invalid.
        FleetError: neither topics nor a pattern, or no broker answers.
        SparkSinkError: Kafka's client refuses a property.
    """
    steps = steps or StartSteps(log=log)
    own = {"client.id": f"azimuth.{settings.owner or socket.gethostname()}.{settings.name}", **settings.kafka}
    kafka = librdkafka_config(own)
    source = Source(name=settings.name, kafka=kafka, topics=settings.topics, pattern=settings.pattern)
    _claims(settings, "not known yet").close()  # reports errors of the settings before waiting for a broker
    topics = ClusterTopics(admin(kafka), source)
    steps.done(f"cluster {topics.cluster} at {kafka['bootstrap.servers']}: {topics.count} topics")
    claims = _claims(settings, topics.cluster)
    steps.done(f"claims are kept in table {settings.claims_table!r} of {shown(settings.database)}")
    # The client joins no group, but librdkafka's consumer queue needs a group name.
    named = {**own, "group.id": settings.name}
    reading = FetchSettings(
        kafka=named,
        fail_on_data_loss=settings.fail_on_data_loss,
        poll_timeout_s=settings.poll_timeout_s,
        headers=settings.include_headers,
    )
    return ClaimedIngest(
        settings,
        Parts(
            claims=claims,
            writer=TableWriter(
                settings.table,
                settings.name,
                claims.owner,
                settings.storage,
                include_headers=settings.include_headers,
            ),
            logs=PartitionOffsets(SourceOptions(kafka=named, group=settings.name)),
            topics=topics.look,
            fetch=SampledFetch(reading),
            ids=topics.ids,
        ),
    )


def run(settings: ClaimedSettings) -> None:
    """Ingest until SIGTERM or SIGINT, then disown and end.

    Raises:
        ClaimsError: the database's address is invalid.
        FleetError: no broker answers.
    """
    stop = threading.Event()

    def hear(number: int, _frame: FrameType | None) -> None:
        if not stop.is_set():  # `timeout` sends the signal twice: to the process, and to its group
            log.info("claims: stopping (%s)", signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, hear)
    place = f"brokers {settings.kafka['bootstrap.servers']}, claims in {shown(settings.database)}"
    log.info("claims: job %s of group %r starts: %s", settings.owner or socket.gethostname(), settings.name, place)
    steps = StartSteps(log=log)
    job = build(settings, steps)
    steps.done(f"job {settings.owner or socket.gethostname()} of group {settings.name!r} writes to {settings.table}")
    job.run(stop)


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
        """Request the present ids of topics, as `ask_ids` does."""
        return ask_ids(self._admin, self._source, names, self._seen.ids)
