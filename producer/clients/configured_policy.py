"""The policy of a confluent-kafka producer, from its configuration and its arguments."""

from collections.abc import Mapping
from typing import Any, Final

from producer.clients.configured_partitioner import client_partitioner, log_default
from producer.clients.producer_options import ProducerOptions
from producer.decisions.producer_settings import KeyMode, ZonePolicy, counts_deliveries, key_rules, zone_order
from producer.errors import PolicyError
from producer.leaders_and_racks import Topology

_BATCH_BYTES = 65_536
REFRESH_S: Final = 30.0
"""Interval at which leaders are read without other events, seconds."""


def zone_policy(config: Mapping[str, Any], options: ProducerOptions) -> ZonePolicy:
    """Create the policy from a producer's configuration and arguments.

    Raises:
        PolicyError: a setting has a value that cannot work.
    """
    mode, rules = key_rules(options.get("keys", KeyMode.GLOBAL))
    choose, batch_bytes = options.get("choose"), options.get("batch_bytes")
    if choose is not None and "keys" in options:
        raise PolicyError(f"keys={options['keys']!r} and choose={choose!r}: choose replaces keys, give one of them")
    if mode is KeyMode.GLOBAL and choose is None:
        log_default(config)
    return ZonePolicy(
        rack=config.get("client.rack"),
        keys=mode,
        key_rules=rules,
        choose=choose,
        fallback=zone_order(options.get("fallback", ())),
        batch_bytes=_batch_size(config) if batch_bytes is None else batch_bytes,
        hold_s=options.get("hold_s", 5.0),
        aware=options.get("aware", True),
        skew=options.get("skew"),
        counts_deliveries=counts_deliveries(options.get("count")),
        adaptive=options.get("adaptive", True),
        availability_timeout_ms=options.get("availability_timeout_ms", 0),
        partitioner=client_partitioner(config),
    )


def topology_of(config: Mapping[str, Any], options: ProducerOptions) -> Topology:
    """Create the reader of leaders and racks; errors as `zone_policy`."""
    return Topology(config, options.get("racks"), options.get("metadata_timeout_s", 10.0))


def _batch_size(config: Mapping[str, Any]) -> int:
    try:
        return int(config.get("batch.size", _BATCH_BYTES))
    except (TypeError, ValueError):  # the client reports the error, with the name
        return _BATCH_BYTES
