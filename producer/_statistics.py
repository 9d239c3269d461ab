"""librdkafka's statistics: bytes on the wire by zone, queues by partition, brokers that went away."""

import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError

from producer._router import Router
from producer._traffic import UNKNOWN
from producer._watcher import Watcher
from producer.topology import Topology

INTERVAL_MS = 5000
_LOST = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE})  # noqa: SLF001 - its constants


class Statistics:
    """Reads what librdkafka reports while the application polls, and passes it on to the application's callbacks."""

    def __init__(self, router: Router, watcher: Watcher, topology: Topology) -> None:
        self._router = router
        self._watcher = watcher
        self._topology = topology
        self._lock = threading.Lock()
        self._sent: dict[int, int] = {}

    def listen(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Put the own callbacks before the application's.

        Args:
            config: the producer's configuration.

        Returns:
            A configuration with both; statistics are switched on unless an interval was set.
        """
        heard = dict(config)
        heard.setdefault("statistics.interval.ms", INTERVAL_MS)
        heard["stats_cb"] = _both(self.read, config.get("stats_cb"))
        heard["error_cb"] = _both(self.hear, config.get("error_cb"))
        return heard

    def hear(self, error: KafkaError) -> None:
        """Have the leaders read again when a broker is gone."""
        if error.code() in _LOST:
            self._watcher.expect_news()

    def read(self, text: str) -> None:
        """Take one report."""
        report = json.loads(text)
        sent = {broker["nodeid"]: broker["txbytes"] for broker in report["brokers"].values() if broker["nodeid"] >= 0}
        with self._lock:
            self._sent.update(sent)
        for topic, about in report["topics"].items():
            self._router.weigh(topic, queues(about["partitions"]))

    def wire_bytes(self) -> dict[str, int]:
        """Add up the bytes sent to the brokers of each zone, as of the last report."""
        zones: dict[str, int] = {}
        with self._lock:
            for broker, sent in self._sent.items():
                zone = self._topology.racks.get(broker) or UNKNOWN
                zones[zone] = zones.get(zone, 0) + sent
        return zones


def listen_async(statistics: Statistics, config: Mapping[str, Any]) -> dict[str, Any]:
    """As `Statistics.listen`, for the asyncio client, whose callbacks are coroutines."""
    heard = {"statistics.interval.ms": INTERVAL_MS, **config}
    heard["stats_cb"] = _both_async(statistics.read, config.get("stats_cb"))
    heard["error_cb"] = _both_async(statistics.hear, config.get("error_cb"))
    return heard


def queues(partitions: Mapping[str, Mapping[str, int]]) -> dict[int, int]:
    """Count what waits for each partition.

    Args:
        partitions: the `partitions` of one topic in a report.

    Returns:
        Bytes per partition id, in the client's queue and on its way to the broker; empty queues are missing.
    """
    waiting = {
        int(number): one["msgq_bytes"] + one["xmit_msgq_bytes"]
        for number, one in partitions.items()
        if int(number) >= 0
    }
    return {partition: amount for partition, amount in waiting.items() if amount}


def _both(own: Callable[[Any], None], theirs: Callable[[Any], None] | None) -> Callable[[Any], None]:
    if theirs is None:
        return own

    def heard(event: Any) -> None:  # noqa: ANN401 - a text or an error, as librdkafka gives it
        own(event)
        theirs(event)

    return heard


def _both_async(
    own: Callable[[Any], None], theirs: Callable[[Any], Awaitable[None]] | None
) -> Callable[[Any], Awaitable[None]]:
    async def heard(event: Any) -> None:  # noqa: ANN401 - a text or an error, as librdkafka gives it
        own(event)
        if theirs is not None:
            await theirs(event)

    return heard
