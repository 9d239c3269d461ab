"""The partitioner that a producer's configuration names, and the default where it names none."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from producer.decisions.librdkafka_partitioners import ClientPartitioner

DEFAULT: Final = ClientPartitioner.MURMUR2_RANDOM
_NAMES: Final = frozenset({"partitioner", "topic.partitioner"})
_log = logging.getLogger("producer")
_logged = False


def configured_partitioner(config: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever was given
    """Find the partitioner that a bare client would use; None where the configuration names none.

    confluent-kafka (2.16.1) prefers `default.topic.config`, and of the two names the one that comes last.
    """
    for settings in (config.get("default.topic.config"), config):
        if isinstance(settings, Mapping):
            given = [value for name, value in settings.items() if name in _NAMES]
            if given:
                return given[-1]
    return None


def client_partitioner(config: Mapping[str, Any]) -> ClientPartitioner:
    """Read the partitioner; the default where there is none, or one that the client will refuse with its name."""
    name = configured_partitioner(config)
    try:
        return ClientPartitioner(name.strip()) if isinstance(name, str) else DEFAULT
    except ValueError:
        return DEFAULT


def with_default(config: Mapping[str, Any]) -> dict[str, Any]:
    """Set the default where there is none: librdkafka chooses until leaders are known, and must map keys the same."""
    return {**config} if configured_partitioner(config) is not None else {**config, "partitioner": DEFAULT.value}


def log_default(config: Mapping[str, Any]) -> None:
    """Log once a process that keys are mapped otherwise than by a bare client of the same configuration."""
    global _logged  # noqa: PLW0603 - once a process
    if _logged or configured_partitioner(config) is not None:
        return
    _logged = True
    _log.warning(
        "Records with a key follow Java's mapping (murmur2_random), because the configuration names no partitioner; "
        "a confluent_kafka.Producer would use librdkafka's consistent_random, which maps most keys to other "
        "partitions. Set 'partitioner': 'consistent_random' to keep its mapping, or 'murmur2_random' to confirm Java's."
    )
