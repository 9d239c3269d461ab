"""The policy of a confluent-kafka producer, from its configuration and its arguments.

It contains the partitioner of the configuration, or the default if there is none.
"""

import logging
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Final

from assignors.clients import whole_number
from producer.clients.producer_options import ProducerOptions
from producer.decisions.partitioner_names import ClientPartitioner
from producer.decisions.producer_settings import KeyMode, ZonePolicy, counts_deliveries, key_rules, zone_order
from producer.errors import PolicyError
from producer.metadata_requests import Topology

_BATCH_BYTES = 65_536
REFRESH_S: Final = 30.0
"""Interval at which leaders are read without other events, seconds."""
DEFAULT: Final = ClientPartitioner.MURMUR2_RANDOM
_NAMES: Final = frozenset({"partitioner", "topic.partitioner"})
_log = logging.getLogger("producer")
_logged = False


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
        rack=rack_of(config),
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


def rack_of(config: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever was given
    """Return the zone of a client, which takes numbers, too, such as Azure's zone 1."""
    rack = config.get("client.rack")
    return str(rack) if isinstance(rack, Integral) else rack


def topology_of(config: Mapping[str, Any], options: ProducerOptions) -> Topology:
    """Create the reader of leaders and racks; errors as `zone_policy`."""
    return Topology(config, options.get("racks"), options.get("metadata_timeout_s", 10.0))


def _batch_size(config: Mapping[str, Any]) -> int:
    size = whole_number(config.get("batch.size"), _BATCH_BYTES)
    return size if size > 0 else _BATCH_BYTES  # the client reports the error, with the name


def configured_partitioner(config: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever was given
    """Return the partitioner that a bare client would use; None if the configuration has none.

    confluent-kafka (2.16.1) prefers the last one of its two names.
    """
    given = [value for name, value in config.items() if name in _NAMES]
    return given[-1] if given else None


def client_partitioner(config: Mapping[str, Any]) -> ClientPartitioner:
    """Return the partitioner; the default if there is none, or if it is invalid (the client refuses and names it)."""
    name = configured_partitioner(config)
    try:
        return ClientPartitioner(name.strip()) if isinstance(name, str) else DEFAULT
    except ValueError:
        return DEFAULT


def with_default(config: Mapping[str, Any]) -> dict[str, Any]:
    """Set the default if there is none: until leaders are known, librdkafka chooses, and must map keys equally."""
    return {**config} if configured_partitioner(config) is not None else {"partitioner": DEFAULT.value, **config}


def log_default(config: Mapping[str, Any]) -> None:
    """Log once per process that keys are mapped differently from a bare client with the same configuration."""
    global _logged  # noqa: PLW0603 - once per process
    if _logged or configured_partitioner(config) is not None:
        return
    _logged = True
    _log.warning(
        "Records with a key follow Java's mapping (murmur2_random), because the configuration names no partitioner; "
        "a confluent_kafka.Producer would use librdkafka's consistent_random, which maps most keys to other "
        "partitions. Set 'partitioner': 'consistent_random' to keep its mapping, or 'murmur2_random' to confirm Java's."
    )
