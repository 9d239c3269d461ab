"""The policy of a confluent-kafka producer, from its configuration and its arguments."""

from collections.abc import Iterable, Mapping
from typing import Any

from producer.clients.default_mapping import client_partitioner, log_default
from producer.decisions.producer_settings import KeyMode, ZonePolicy, counts_deliveries, key_rules, zone_order
from producer.decisions.skew_guard import SkewGuard
from producer.decisions.zone_choice import Choose

_BATCH_BYTES = 65_536


def zone_policy(  # noqa: PLR0913 - one setting each
    config: Mapping[str, Any],
    keys: str | Mapping[str, str],
    fallback: Iterable[str],
    batch_bytes: int | None,
    *,
    hold_s: float,
    aware: bool,
    skew: SkewGuard | None,
    choose: str | Choose | None,
    count: str,
    adaptive: bool,
    availability_timeout_ms: int,
) -> ZonePolicy:
    """Create the policy from a producer's configuration and arguments.

    Raises:
        PolicyError: a setting has a value that cannot work.
    """
    mode, rules = key_rules(keys)
    if mode is KeyMode.GLOBAL and choose is None:
        log_default(config)
    return ZonePolicy(
        rack=config.get("client.rack"),
        keys=mode,
        key_rules=rules,
        choose=choose,
        fallback=zone_order(fallback),
        batch_bytes=_batch_size(config) if batch_bytes is None else batch_bytes,
        hold_s=hold_s,
        aware=aware,
        skew=skew,
        counts_deliveries=counts_deliveries(count),
        adaptive=adaptive,
        availability_timeout_ms=availability_timeout_ms,
        partitioner=client_partitioner(config),
    )


def _batch_size(config: Mapping[str, Any]) -> int:
    try:
        return int(config.get("batch.size", _BATCH_BYTES))
    except (TypeError, ValueError):  # the client reports the error, with the name
        return _BATCH_BYTES
