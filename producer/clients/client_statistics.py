"""librdkafka's statistics: bytes on the wire by zone, queues by partition, brokers that went away."""

import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaError

from producer.clients.leader_watcher import Watcher
from producer.routing.topic_choices import Router
from producer.topology import Topology
from producer.traffic_counts import UNKNOWN, Count, Traffic

# librdkafka's own partitioner chooses while leaders are not known: then, too, a key must go where Java puts it.
_DEFAULTS: Mapping[str, Any] = {"statistics.interval.ms": 5000, "partitioner": "murmur2_random"}
_STUCK = 1 << 60
_LOST = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE})  # noqa: SLF001 - its constants


class Statistics:
    """Reads what librdkafka reports while the application polls, and passes it on to the application's callbacks."""

    def __init__(self, router: Router, watcher: Watcher, topology: Topology) -> None:
        self._router = router
        self._watcher = watcher
        self._topology = topology
        self._lock = threading.Lock()
        self._sent: dict[int, int] = {}
        self._seen: dict[tuple[str, int], Count] = {}
        self._topics: dict[tuple[str, str], Count] = {}
        self._interval_s = 0.0

    def begin(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Add what is switched on by default, and expect the first report."""
        heard = {**_DEFAULTS, **config}
        with contextlib.suppress(TypeError, ValueError):  # the client says what is wrong with it, by its name
            self._interval_s = int(heard["statistics.interval.ms"]) / 1000
        if self._interval_s:
            self._watcher.await_report(self._interval_s)
        return heard

    def listen(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Put the own callbacks before the application's.

        Args:
            config: the producer's configuration.

        Returns:
            A configuration with both; statistics are switched on unless an interval was set.
        """
        heard = self.begin(config)
        heard["stats_cb"] = _both(self.read, config.get("stats_cb"))
        heard["error_cb"] = _both(self.hear, config.get("error_cb"))
        return heard

    def hear(self, error: KafkaError) -> None:
        """Have the leaders read again when a broker is gone."""
        if error.code() in _LOST:
            self._watcher.expect_news()

    def read(self, text: str) -> None:
        """Take one report."""
        self._watcher.await_report(self._interval_s)
        report = json.loads(text)
        brokers = [broker for broker in report["brokers"].values() if broker["nodeid"] >= 0]
        down = {broker["nodeid"] for broker in brokers if broker["state"] != "UP"}
        with self._lock:
            self._sent.update({broker["nodeid"]: broker["txbytes"] for broker in brokers})
            for topic, about in report["topics"].items():
                self._book(topic, about["partitions"])
        for topic, about in report["topics"].items():
            self._router.weigh(topic, queues(about["partitions"], down, self._router.policy.batch_bytes))

    def _book(self, topic: str, partitions: Mapping[str, Mapping[str, int]]) -> None:
        for number, one in partitions.items():
            place = topic, int(number)
            now = Count(one["txmsgs"], one["txbytes"])
            before = self._seen.get(place, Count())
            if now.records > before.records:
                self._seen[place] = now
                cell = topic, self._topology.racks.get(one["leader"]) or UNKNOWN
                sent = Count(now.records - before.records, now.bytes - before.bytes)
                self._topics[cell] = self._topics.get(cell, Count()).plus(sent)

    def complete(self, traffic: Traffic) -> Traffic:
        """Add what went over the wire as of the last report."""
        zones: dict[str, int] = {}
        with self._lock:
            for broker, sent in self._sent.items():
                zone = self._topology.racks.get(broker) or UNKNOWN
                zones[zone] = zones.get(zone, 0) + sent
            return replace(traffic, wire_bytes=zones, wire_topics=dict(self._topics))


def listen_async(statistics: Statistics, config: Mapping[str, Any]) -> dict[str, Any]:
    """As `Statistics.listen`, for the asyncio client, whose callbacks are coroutines."""
    heard = statistics.begin(config)
    heard["stats_cb"] = _both_async(statistics.read, config.get("stats_cb"))
    heard["error_cb"] = _both_async(statistics.hear, config.get("error_cb"))
    return heard


def queues(
    partitions: Mapping[str, Mapping[str, int]], down: Collection[int] = (), batch_bytes: int = 1
) -> dict[int, int]:
    """Count what waits for each partition.

    Args:
        partitions: the `partitions` of one topic in a report.
        down: ids of brokers without a connection.
        batch_bytes: of a batch, the unit of the queues. In bytes, a queue of a few records against an empty one would
            weigh so much that one partition had everything until the next report.

    Returns:
        Full batches per partition id, in the client's queue and on its way to the broker; partitions without one are
        missing. What waits for a broker that is down weighs as much as everything there is, so that hardly anything
        joins it.

    Source: KIP-794, where queues are counted in batches.
    """
    waiting = {}
    for number, one in partitions.items():
        amount = one["msgq_bytes"] + one["xmit_msgq_bytes"]
        batches = _STUCK if amount and one["leader"] in down else amount // batch_bytes
        if batches and int(number) >= 0:
            waiting[int(number)] = batches
    return waiting


def _both(own: Callable[[Any], None], theirs: Callable[[Any], None] | None) -> Callable[[Any], None]:
    if theirs is None:
        return own
    if not callable(theirs):
        return theirs  # the client refuses it by its name, before anything starts

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
