"""Conditions on more than one setting of a fleet, checked once all of them are read."""

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from spark_sink.errors import OptionError, SparkSinkError
from spark_sink.fleet.settings_tables import KafkaMembership, SourceSettings, refuse_unknown_sources
from spark_sink.formats.quarantine_addresses import refuse_quarantine_address
from spark_sink.lake.mistaken_addresses import refuse_mistaken
from spark_sink.lake.table_addresses import CLUSTER, PLACEHOLDER

if TYPE_CHECKING:
    from spark_sink.fleet.fleet_settings import FleetSettings


def refuse_conflicts(settings: "FleetSettings", config: Path) -> None:
    """Refuse settings that do not fit each other.

    Args:
        settings: all settings of an agent.
        config: the file that they are from, for the sentence of an error.

    Raises:
        OptionError: the table has the address of a quarantine, a mistaken one or one of another format, an override
            names no source, an option of values is invalid, two sources would write into one table, the ops log's
            address meets theirs, or the home cluster is not one of the sources.
        BoundError: epsilon is negative or not finite.
        FleetError: a source, a number or an agent is invalid.
        WorkersError: workers below 1, or an invalid pattern.
    """
    try:
        _check_names(settings)
    except OptionError as error:
        raise OptionError(f"{config}: {error}") from error
    _check_sources(settings, config)
    try:
        for name in settings.sources if settings.has_row_options else ():
            settings.rows(name)
    except SparkSinkError as error:
        raise OptionError(f"{config}: {error}") from error
    if settings.balance == "volume" and not (settings.workers.topic or settings.workers.weights):
        raise OptionError(
            f"{config}: balance = 'volume' needs the topics' volumes: set workers.topic, where the autoscaler "
            "publishes rates, or workers.weights"
        )
    _ = settings.agent_id, settings.session, settings.fleet_workers, settings.placement, settings.lane_count
    for name in settings.sources:
        settings.source(name)
    for one, other in combinations(settings.sources, 2):
        _refuse_twins(settings, config, one, other)


def on_one_cluster(one: SourceSettings, other: SourceSettings) -> bool:
    """Return whether two sources are on one cluster, because they have a broker address in common."""
    a, b = (set(source.bootstrap_servers.replace(" ", "").split(",")) for source in (one, other))
    return bool(a & b)


def _check_names(settings: "FleetSettings") -> None:
    """Check the addresses of the tables and of the ops log, and the sources of the overrides."""
    refuse_mistaken(settings.table, (PLACEHOLDER, CLUSTER))
    for name in settings.sources:
        refuse_quarantine_address(settings.address(name))
    if (ops := settings.ops) is not None and settings.table_format == "delta":  # the ops log is one, too
        ops.refuse_near([settings.table])
    refuse_unknown_sources(settings.workers.overrides, settings.sources, "workers.overrides")


def _check_sources(settings: "FleetSettings", config: Path) -> None:
    """Check that each source has tables of its own, and that the home cluster is one of them."""
    if len(settings.sources) > 1 and CLUSTER not in settings.table:
        raise OptionError(
            f"{config}: table {settings.table!r} serves {len(settings.sources)} sources, whose topics may have the "
            f"same names: put {CLUSTER} into the address"
        )
    member = settings.membership
    if isinstance(member, KafkaMembership) and member.home not in {None, *settings.sources}:
        raise OptionError(f"{config}: membership.home {member.home!r} is none of {list(settings.sources)}")


def _refuse_twins(settings: "FleetSettings", config: Path, one: str, other: str) -> None:
    """Refuse two sources with one table, or with the same brokers and topics: one group would write two tables."""
    if (address := settings.address(one)) == settings.address(other):
        raise OptionError(f"{config}: sources {one!r} and {other!r} have one table, {address}; rename a source")
    a, b = settings.source(one), settings.source(other)
    if not on_one_cluster(settings.sources[one], settings.sources[other]):
        return
    both = sorted({*a.wanted(b.topics), *b.wanted(a.topics)})
    both += [a.pattern] if a.pattern is not None and a.pattern == b.pattern else []
    if both:
        raise OptionError(
            f"{config}: sources {one!r} and {other!r} both read {both[0]!r} from {a.kafka['bootstrap.servers']}: "
            "take it out of one of the two"
        )
