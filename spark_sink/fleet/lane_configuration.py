"""The properties of a lane's client beyond those of its source."""

from collections.abc import Mapping
from typing import Any, Final

_DEFAULTS: Final[Mapping[str, Any]] = {
    "log_level": 2,
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 500,
    # In a rebalance librdkafka holds all partitions, also those that stay, until its callback has returned and the
    # answers under way have come: with the default of 500 ms others pause for so much longer.
    "fetch.wait.max.ms": 200,
    # Bytes by broker, for the cost of those that cross zones.
    "statistics.interval.ms": 10_000,
    # Only this finds a topic that was deleted and recreated; the default is five minutes.
    "topic.metadata.refresh.interval.ms": 3000,
}
_FIXED: Final[Mapping[str, Any]] = {
    # Partitions that stay are read on while others move (KIP-429).
    "partition.assignment.strategy": "cooperative-sticky",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
}


def lane_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Librdkafka's properties of a lane: the source's, above defaults, below what the fleet depends on."""
    return {**_DEFAULTS, **config, **_FIXED}
