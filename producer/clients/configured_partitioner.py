"""The partitioner of a producer's configuration, and the default if it has none."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from producer.decisions.partitioner_names import ClientPartitioner

DEFAULT: Final = ClientPartitioner.MURMUR2_RANDOM
_NAMES: Final = frozenset({"partitioner", "topic.partitioner"})
_log = logging.getLogger("producer")
_logged = False


def configured_partitioner(config: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever was given
    """Return the partitioner that a bare client would use; None if the configuration has none.

    confluent-kafka (2.16.1) prefers `default.topic.config`, and among its two names the last one.
    """
    for settings in (config.get("default.topic.config"), config):
        if isinstance(settings, Mapping):
            given = [value for name, value in settings.items() if name in _NAMES]
            if given:
                return given[-1]
    return None


def client_partitioner(config: Mapping[str, Any]) -> ClientPartitioner:
    """Return the partitioner; the default if there is none, or if it is invalid (the client refuses and names it)."""
    name = configured_partitioner(config)
    try:
        return ClientPartitioner(name.strip()) if isinstance(name, str) else DEFAULT
    except ValueError:
        return DEFAULT


def with_default(config: Mapping[str, Any]) -> dict[str, Any]:
    """Set the default if there is none: until leaders are known, librdkafka chooses, and must map keys equally."""
    return {**config} if configured_partitioner(config) is not None else {**config, "partitioner": DEFAULT.value}


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
