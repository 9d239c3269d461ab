"""The questions of `azimuth agent`: answered on the terminal with `--check`, and in the log at each start."""

import logging
from collections.abc import Collection
from pathlib import Path

from assignors.clients import shown
from assignors.errors import FleetError
from assignors.fleet import Lane
from spark_sink.checks import BrokerChecks, Check, Finding, check_writable, ops_checks, port_checks, run
from spark_sink.errors import OptionError
from spark_sink.fleet.agent_process import members
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.fleet.row_checks import row_checks
from spark_sink.fleet.settings_tables import KafkaMembership, RedisMembership, refuse_unknown_sources
from spark_sink.fleet.workers_in_force import read_overrides

log = logging.getLogger(__name__)


def run_checks(settings: FleetSettings, http: tuple[str, int] | None = None) -> list[Finding]:
    """Run the checks of `--check`.

    Args:
        settings: of the fleet.
        http: host and port of the pages; None for none.
    """
    after = f"{settings.home} brokers" if isinstance(settings.membership, KafkaMembership) else None
    name = Check(subject="name", place=_membership(settings), ask=lambda: _free_name(settings), after=after)
    port = [] if http is None else port_checks(http[1], "--http", http[0])
    return run([*planned_checks(settings), *port, name])


def log_faults(settings: FleetSettings) -> None:
    """Log each fault in one sentence; the agent starts nevertheless, because its other clusters may work."""
    for one in run(planned_checks(settings)):
        if one.bad:
            log.warning("fleet: check of %s: %s", one.subject, one.text)


def planned_checks(settings: FleetSettings) -> list[Check]:
    """Return the checks of each source, the workers topic, and the files of overrides and of the status."""
    found = [check for source in settings.sources for check in _of_source(settings, source)]
    if (topic := settings.workers.topic) is not None:
        home = BrokerChecks(settings.kafka(settings.home), f"sources.{settings.home}")

        def workers() -> str:
            home.reached()
            return home.workers_topic(topic, "workers.topic")

        found.append(Check(subject="workers", place=home.servers, ask=workers))
    if (overrides := settings.workers.file) is not None:
        known = settings.sources
        found.append(Check(subject="overrides", place=str(overrides), ask=lambda: _overrides(overrides, known)))
    found += ops_checks(settings.ops)
    if (file := settings.status_file) is not None:
        found.append(Check(subject="status", place=str(file), ask=lambda: _status(file)))
    return found


def _of_source(settings: FleetSettings, name: str) -> list[Check]:
    source, brokers = settings.sources[name], BrokerChecks(settings.kafka(name), f"sources.{name}")
    servers, first = brokers.servers, f"{name} brokers"
    table, group = settings.address(name), Lane(name, 0).group(settings.name)
    rows = settings.rows(name)
    selected = f"sources.{name}.{'topics' if source.topics else 'pattern'}"
    return [
        Check(subject=first, place=servers, ask=brokers.reached),
        Check(
            subject=f"{name} topics",
            place=servers,
            ask=lambda: brokers.topics(source.topics, source.pattern, selected),
            after=first,
        ),
        Check(subject=f"{name} group", place=servers, ask=lambda: brokers.group(group), after=first),
        *row_checks(rows, table, settings.name, settings.table_storage, source.topics, source.pattern, f"{name} "),
    ]


def _overrides(file: Path, sources: Collection[str]) -> str:
    found = read_overrides(file)
    refuse_unknown_sources(found, sources, f"{file}:")
    return f"{file}: overrides of {len(found)} topics"


def _membership(settings: FleetSettings) -> str:
    """Return the address of the membership's server, without its password."""
    given = settings.membership
    if isinstance(given, RedisMembership):
        return f"Redis at {shown(given.url)}"
    return settings.sources[settings.home].bootstrap_servers


def _status(file: Path) -> str:
    if file.is_dir():
        raise OptionError(f"{file}: is a folder; name a file in it")
    return check_writable(str(file.absolute().parent), {})


def _free_name(settings: FleetSettings) -> str:
    view = members(settings).observe().view
    living = set() if view is None else view.ids
    if settings.agent in living and settings.membership.kind != "static":
        raise FleetError(
            f"agent {settings.agent!r} of fleet {settings.name!r} is running already: give each agent a name of its "
            f"own (--agent); an agent that was killed leaves within {settings.session_s:g} s"
        )
    return f"fleet {settings.name!r}: {len(living)} live agents"
