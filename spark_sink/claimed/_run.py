"""A job as a process: built from its settings, run until it is told to stop."""

import logging
import signal
import threading
from collections.abc import Sequence
from functools import partial
from types import FrameType

from confluent_kafka.admin import AdminClient

from assignors._errors import FleetError
from assignors.fleet import FleetTopic
from assignors.fleet._clusters import Source, ask_ids, sight
from assignors.scaling.claims import PartitionClaims
from spark_sink._clients import librdkafka_config
from spark_sink._fetch import fetch
from spark_sink._fetch_settings import FetchSettings
from spark_sink._lag import admin
from spark_sink._logs import Logs
from spark_sink._options import SourceOptions
from spark_sink.claimed._ingest import ClaimedIngest, Parts
from spark_sink.claimed._settings import ClaimedSettings
from spark_sink.fleet._writer import TableWriter

log = logging.getLogger(__name__)


def build(settings: ClaimedSettings) -> ClaimedIngest:
    """Make a job.

    Raises:
        ClaimsError: the database's address has no meaning.
        FleetError: neither topics nor a pattern, or no broker answers.
        SparkSinkError: a property that Kafka's client does not take.
    """
    kafka = librdkafka_config(settings.kafka)
    source = Source(name=settings.name, kafka=kafka, topics=settings.topics, pattern=settings.pattern)
    _claims(settings, "not known yet").close()  # what is wrong with them is said before a broker is waited for
    client = admin(kafka)
    cluster = sight(client, source).cluster
    claims = _claims(settings, cluster)
    # No group is joined, but librdkafka has no consumer's queue without a group's name.
    named = {**settings.kafka, "group.id": settings.name}
    reading = FetchSettings(
        kafka=named, fail_on_data_loss=settings.fail_on_data_loss, poll_timeout_s=settings.poll_timeout_s
    )
    return ClaimedIngest(
        settings,
        Parts(
            claims=claims,
            writer=TableWriter(settings.table, settings.name, claims.owner, settings.storage),
            logs=Logs(SourceOptions(kafka=named, group=settings.name)),
            topics=lambda: _topics(client, source, cluster),
            fetch=lambda ranges: fetch(ranges, reading),
            ids=partial(ask_ids, client, source),
        ),
    )


def run(settings: ClaimedSettings) -> None:
    """Ingest until SIGTERM or SIGINT, then disown and end.

    Raises:
        ClaimsError: the database's address has no meaning.
        FleetError: no broker answers.
    """
    stop = threading.Event()

    def hear(number: int, _frame: FrameType | None) -> None:
        log.info("claims: told to stop (%s)", signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, hear)
    build(settings).run(stop)


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


def _topics(client: AdminClient, source: Source, cluster: str) -> Sequence[FleetTopic]:
    seen = sight(client, source)
    if seen.cluster != cluster:
        raise FleetError(
            f"source {source.name!r}: {source.kafka['bootstrap.servers']} is cluster {seen.cluster!r} now, and was "
            f"{cluster!r}: start the job again"
        )
    for problem in seen.problems:
        log.warning("claims: %s", problem)
    return seen.topics
