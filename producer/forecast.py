"""Forecasts where a producer's records of a topic go, now and after each zone's failure. Sends no record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from producer.decisions.candidate_partitions_in_zone import (
    Leaders,
    Locality,
    Racks,
    Reason,
    copies_elsewhere,
    locate,
    zones_of,
)
from producer.traffic_cost import UNKNOWN

_NO_ZONES: Final = "set broker.rack on the brokers to see the copies and the failures of zones"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """One state of the leaders, from the view of one zone.

    Attributes:
        locality: candidates of records without a key, and of keys in a local mode.
        zones: share of those records by zone of the leader, sum 1.
        keyed_zones: the same for keys in the global mode, which do not depend on the zone.
        leaderless: partitions without a leader.
        replication: copies of a record without a key that brokers send to other zones, on average over the candidates.
        keyed_replication: the same for keys in the global mode, over all partitions.
    """

    locality: Locality
    zones: Mapping[str, float]
    keyed_zones: Mapping[str, float]
    leaderless: tuple[int, ...]
    replication: float
    keyed_replication: float

    @property
    def local(self) -> bool:
        """Whether records stay in their zone."""
        return self.locality.reason is Reason.LOCAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A topic, from the view of one zone.

    Attributes:
        topic: its name.
        rack: the producer's zone.
        partitions: number of partitions.
        now: with the current leaders.
        failures: by failed zone, with the next replicas in sync as leaders.
        lagging: partitions with a replica that is not in sync.
    """

    topic: str
    rack: str
    partitions: int
    now: Outlook
    failures: Mapping[str, Outlook]
    lagging: tuple[int, ...] = ()

    @property
    def skew(self) -> float:
        """The largest partition's bytes over the mean partition's, if only this zone writes records without a key."""
        return self.partitions / len(self.now.locality.candidates)


def forecast(  # noqa: PLR0913, PLR0917 - a topic's metadata and one producer's settings
    topic: str,
    leaders: Leaders,
    replicas: Sequence[Sequence[int]],
    racks: Racks,
    rack: str,
    fallback: Sequence[str] = (),
    in_sync: Sequence[Sequence[int]] | None = None,
) -> Forecast:
    """Forecast the destinations of records.

    Args:
        topic: its name.
        leaders: broker id per partition, None without a leader; shape (P,).
        replicas: broker ids per partition, in order of preference; shape (P, replication factor).
        racks: rack per broker id.
        rack: zone of the producer.
        fallback: zones to try after the producer's.
        in_sync: broker ids of the replicas in sync per partition; None if unknown.

    Returns:
        The outlook now and for the failure of each zone. A failed zone's leaders move to the first replica elsewhere
        that is in sync, as the controller elects (unless `unclean.leader.election.enable` is set).
    """
    zones = sorted({zone for zone in racks.values() if zone})
    synced = replicas if in_sync is None else in_sync
    electable = [[one for one in all_ if one in set(synced[number])] for number, all_ in enumerate(replicas)]
    failures = {
        zone: _outlook(_after(leaders, electable, racks, zone), replicas, racks, rack, fallback) for zone in zones
    }
    return Forecast(
        topic=topic,
        rack=rack,
        partitions=len(leaders),
        now=_outlook(leaders, replicas, racks, rack, fallback),
        failures=failures,
        lagging=tuple(number for number, all_ in enumerate(replicas) if not set(all_) <= set(synced[number])),
    )


def _after(leaders: Leaders, replicas: Sequence[Sequence[int]], racks: Racks, failed: str) -> Leaders:
    def survivor(leader: int | None, candidates: Sequence[int]) -> int | None:
        if leader is None or racks.get(leader) != failed:
            return leader
        return next((replica for replica in candidates if racks.get(replica) != failed), None)

    return tuple(survivor(leader, candidates) for leader, candidates in zip(leaders, replicas, strict=True))


def _outlook(
    leaders: Leaders, replicas: Sequence[Sequence[int]], racks: Racks, rack: str, fallback: Sequence[str]
) -> Outlook:
    copies = copies_elsewhere(leaders, replicas, racks)
    locality = locate(leaders, racks, rack, fallback)
    zones = [zone or UNKNOWN for zone in zones_of(leaders, racks)]
    return Outlook(
        locality=locality,
        zones=_shares([zones[partition] for partition in locality.candidates]),
        keyed_zones=_shares(zones),
        leaderless=tuple(partition for partition, leader in enumerate(leaders) if leader is None),
        replication=fmean(copies[partition] for partition in locality.candidates),
        keyed_replication=fmean(copies),
    )


def _shares(zones: Sequence[str]) -> dict[str, float]:
    return {zone: zones.count(zone) / len(zones) for zone in sorted(set(zones))}


def render(forecast_: Forecast) -> str:
    """Format a forecast as text.

    Args:
        forecast_: the forecast.

    Returns:
        Lines without colours or tabs, 80 columns if names of zones are short.
    """
    now = forecast_.now
    lines = [
        f"producer in {forecast_.rack}, topic {forecast_.topic}, {forecast_.partitions} partitions",
        "",
        f"  candidates      {_ids(now.locality.candidates)} ({now.locality.reason.value})",
        f"  each gets       {1 / len(now.locality.candidates):.2%} of these records (no key, or a key in a local mode)",
        f"  no key, local   {_zones(now.zones)}",
        f"  global keys     {_zones(now.keyed_zones)}",
    ]
    if forecast_.failures:
        copies = f"{now.replication:.2f} copies to other zones ({now.keyed_replication:.2f} of global keys)"
        lines += [
            f"  replication     {copies};",
            "                  brokers send them, so no client can avoid them",
        ]
    if now.locality.reason is Reason.UNKNOWN_RACK:
        lines.insert(3, f"  racks seen      {', '.join(forecast_.failures)}")
    if now.leaderless:
        lines.append(f"  without leader  {_ids(now.leaderless)}")
    if forecast_.lagging:
        lines.append(f"  not in sync     {_ids(forecast_.lagging)}")
    if not forecast_.failures:
        return "\n".join([*lines, "", f"  {_NO_ZONES}"])
    lines += ["", "  if this zone fails, records without a key and local keys go to"]
    for zone, after in forecast_.failures.items():
        lines.append(f"    {zone:<14}{_zones(after.zones)} ({after.locality.reason.value})")
        if after.leaderless:
            lines.append(f"{'':<18}no leader for {_ids(after.leaderless)}")
    return "\n".join(lines)


def render_all(forecasts: Sequence[Forecast]) -> str:
    """Format the forecasts of several topics as one table, with crossing bytes as shares of the topic's bytes.

    Args:
        forecasts: at least one, all of the same zone.

    Returns:
        Lines without colours or tabs; only long names of topics make them longer than 80 columns.
    """
    rack, width = forecasts[0].rack, max(5, *(len(one.topic) for one in forecasts))
    lines = [
        f"producer in {rack}, {len(forecasts)} topics, {sum(one.partitions for one in forecasts)} partitions",
        "",
        f"  {'topic':<{width}}  parti-  candi-  max/  crosses:  crosses:  copies to  not in",
        f"  {'':<{width}}   tions   dates  mean    no key  glob.key  o. zones*    sync",
    ]
    for one in forecasts:
        copies = f"{one.now.replication:.2f}" if one.failures else UNKNOWN
        away, keyed = (1 - shares.get(rack, 0.0) for shares in (one.now.zones, one.now.keyed_zones))
        lines.append(
            f"  {one.topic:<{width}}  {one.partitions:>6}  {len(one.now.locality.candidates):>6}  {one.skew:>4.1f}"
            f"  {away:>8.0%}  {keyed:>8.0%}  {copies:>9}  {len(one.lagging):>6}"
        )
    lines += ["", "* replication: brokers send each byte that often to other zones, so no client can avoid it"]
    if not any(one.failures for one in forecasts):
        lines.append(f"* {_NO_ZONES}")
    return "\n".join(lines)


def _zones(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{zone} {share:.0%}" for zone, share in shares.items())


def _ids(partitions: Sequence[int]) -> str:
    shown = 6
    text = ", ".join(str(partition) for partition in partitions[:shown])
    return text if len(partitions) <= shown else f"{text}, ... ({len(partitions)} in all)"
