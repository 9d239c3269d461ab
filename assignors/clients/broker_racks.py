"""The racks of a cluster's brokers, requested when an unknown broker appears."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

_AGAIN_S: Final = 60.0
_TIMEOUT_S: Final = 5.0

Racks = Mapping[int, str | None]
# Those of a consumer that a separate client must not have: its callbacks, its group and its rebalances.
_LEFT_OUT: Final = ("group.", "enable.auto.", "auto.", "max.poll.", "partition.assignment.", "statistics.", "fetch.")
_CALLBACKS: Final = ("stats_cb", "error_cb", "throttle_cb", "logger", "on_commit")


class BrokerRacks:
    """Racks by broker id.

    Args:
        kafka: librdkafka's properties of a client of the cluster.
        ask: requests the racks; by default from the cluster (DESCRIBE on the cluster is needed).
        clock: seconds of a monotonic clock.

    Contract: brokers that are down keep their last rack. If the cluster does not answer, or refuses the request, racks
    stay unknown, and are requested again after a minute at the earliest.
    """

    def __init__(
        self,
        kafka: Mapping[str, Any],
        ask: Callable[[], Racks] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kafka = dict(kafka)
        self._ask = ask or self._request
        self._clock = clock
        self._known: dict[int, str | None] = {}
        self._asked_at: float | None = None

    def of(self, brokers: Collection[int]) -> Racks:
        """Return the known racks; blocks for up to 6 s if one of these brokers is unknown."""
        now = self._clock()
        if set(brokers) - self._known.keys() and (self._asked_at is None or now - self._asked_at >= _AGAIN_S):
            self._asked_at = now
            self._known |= self._ask()
        return self._known

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use other credentials from the next request on."""
        self._kafka |= {"sasl.username": username, "sasl.password": password}
        self._asked_at = None

    def _request(self) -> Racks:
        from confluent_kafka import KafkaException  # noqa: PLC0415 -- not every member of a group loads librdkafka
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415 -- not every member of a group loads librdkafka

        config = {
            name: value
            for name, value in self._kafka.items()
            if not name.startswith(_LEFT_OUT) and name not in _CALLBACKS
        }
        try:
            admin = AdminClient({**config, "log_level": 0})  # the consumer logs the same faults
            nodes = admin.describe_cluster(request_timeout=_TIMEOUT_S).result(_TIMEOUT_S + 1).nodes
        except (KafkaException, TimeoutError):
            return {}
        return {node.id: node.rack or None for node in nodes}
