"""The checks of `azimuth claims run --check`."""

from typing import Final

from assignors.claims import ClaimsError, check_claims
from assignors.clients import shown
from assignors.fleet import Source
from spark_sink.checks import BrokerChecks, Check, Finding, ops_checks, port_checks, run
from spark_sink.claimed.job_settings import ClaimedSettings
from spark_sink.errors import ClusterError
from spark_sink.fleet.row_checks import row_checks
from spark_sink.kafka.client_property_names import librdkafka_config
from spark_sink.kafka.group_lag import admin

_SETTINGS: Final = "--bootstrap-servers and --kafka"


def run_checks(settings: ClaimedSettings) -> list[Finding]:
    """Run the checks of `--check`.

    Raises:
        FleetError: neither topics nor a pattern, or an invalid one.
        LagError: a property of the Kafka client is unknown or invalid.
    """
    kafka = librdkafka_config(settings.kafka)
    source = Source(name=settings.name, kafka=kafka, topics=settings.topics, pattern=settings.pattern)
    admin(kafka)
    return run(planned_checks(settings, source))


def planned_checks(settings: ClaimedSettings, source: Source) -> list[Check]:
    """Return the checks of brokers, topics, the database of claims, the table and the registry."""
    brokers = BrokerChecks(source.kafka, _SETTINGS)
    selected = "--subscribe" if source.topics else "--subscribe-pattern"
    return [
        Check(subject="brokers", place=brokers.servers, ask=brokers.reached),
        Check(
            subject="topics",
            place=brokers.servers,
            ask=lambda: brokers.topics(source.topics, source.pattern, selected),
            after="brokers",
        ),
        Check(subject="claims", place=shown(settings.database), ask=lambda: _claims(settings)),
        *row_checks(settings.rows, settings.table, settings.name, settings.storage, source.topics, source.pattern),
        *ops_checks(settings.ops),
        *port_checks(settings.metrics_port, "--metrics-port"),
    ]


def _claims(settings: ClaimedSettings) -> str:
    try:
        return check_claims(settings.database, settings.claims_table)
    except ClaimsError as error:
        raise ClusterError(f"{error}; check --database and --claims-table") from error
