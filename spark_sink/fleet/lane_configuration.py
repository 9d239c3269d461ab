"""The properties of a lane's client beyond those of its source."""

from collections.abc import Mapping
from typing import Any, Final

from assignors.clients import flat
from spark_sink.kafka.client_property_names import leaving_silent_leaders

_DEFAULTS: Final[Mapping[str, Any]] = {
    "log_level": 2,
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 500,
    # In a rebalance librdkafka pauses all partitions, also those that stay, until its callback has returned and the
    # pending fetches are answered: with the default of 500 ms the pause would be longer by this time.
    "fetch.wait.max.ms": 200,
    # Bytes by broker, for the cost of cross-zone traffic.
    "statistics.interval.ms": 10_000,
    # Only a metadata refresh finds a recreated topic; the default interval is five minutes.
    "topic.metadata.refresh.interval.ms": 3000,
}
_FIXED: Final[Mapping[str, Any]] = {
    # Reading of partitions that stay continues while others move (KIP-429).
    "partition.assignment.strategy": "cooperative-sticky",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    # The marker that ends a transaction has an offset but is not a record: only this event reports the end of a log.
    "enable.partition.eof": True,
}


def lane_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's properties of a lane: the source's override the defaults, but not the required ones.

    These have a second name, and of two names librdkafka takes the last.
    """
    given = {name: value for name, value in flat(config).items() if name.removeprefix("topic.") not in _FIXED}
    return {**_DEFAULTS, **leaving_silent_leaders(given), **given, **_FIXED}
