"""Counts what a consumer received, from librdkafka's statistics."""

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from assignors.clients.broker_racks import BrokerRacks
from assignors.clients.librdkafka_values import whole_number
from assignors.clients.received_traffic import Received, ReceivedTraffic
from assignors.consumer.consumer_errors import ConsumerError

_INTERVAL = "statistics.interval.ms"


class ReceivedBytes:
    """Adds up librdkafka's reports by topic and broker, while the program polls.

    Args:
        config: properties of the fetching client.

    Contract: counts never fall, even if a client replaces another one, or a partition leaves and returns: librdkafka
    counts from zero again then.

    Attributes:
        complete: changes a report before the program gets it.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self.complete: Callable[[dict[str, Any]], object] = _nothing
        self._racks = BrokerRacks(config)
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], Received] = {}
        self._counts: dict[tuple[str, int], Received] = {}
        self._sent: dict[str, int] = {}
        self._wire: dict[int, int] = {}

    @property
    def counts(self) -> bool:
        """Whether librdkafka reports statistics: only if the program sets an interval, as a report costs time."""
        return whole_number(self._config.get(_INTERVAL), 0) > 0

    def with_callback(self) -> dict[str, Any]:
        """Return the configuration with a callback that calls the program's own, too."""
        theirs = self._config.get("stats_cb")
        if not self.counts or not (theirs is None or callable(theirs)):  # librdkafka refuses other values
            return dict(self._config)
        return {**self._config, "stats_cb": self._counted_before(theirs)}

    def _counted_before(self, theirs: Callable[[str], object] | None) -> Callable[[str], None]:
        def hear(text: str) -> None:
            self.hear(report := json.loads(text))
            if theirs is not None:
                self.complete(report)
                theirs(json.dumps(report))

        return hear

    def hear(self, report: Mapping[str, Any]) -> None:
        """Process one report."""
        with self._lock:
            for name, broker in report["brokers"].items():
                # A broker may be listed twice, the second time as the group's coordinator.
                fresh = broker["rxbytes"] - self._sent.get(name, 0)
                self._sent[name] = broker["rxbytes"]
                if broker["nodeid"] >= 0:
                    moved = fresh if fresh >= 0 else broker["rxbytes"]
                    self._wire[broker["nodeid"]] = self._wire.get(broker["nodeid"], 0) + moved
            for topic, about in report["topics"].items():
                for number, one in about["partitions"].items():
                    self._book(topic, number, one)

    def _book(self, topic: str, number: str, one: Mapping[str, int]) -> None:
        now = Received(one["rxmsgs"], one["rxbytes"])
        before = self._seen.get((topic, number), Received())
        self._seen[topic, number] = now
        if now.records < before.records or now.bytes < before.bytes:
            before = Received()
        fresh = now.minus(before)
        if fresh.records:
            # The broker that is fetched from: the leader, or a replica in the consumer's zone (KIP-392).
            cell = topic, one["broker"] if one["broker"] >= 0 else one["leader"]
            self._counts[cell] = self._counts.get(cell, Received()).plus(fresh)

    def traffic(self) -> ReceivedTraffic:
        """Return the counts so far.

        Raises:
            ConsumerError: librdkafka reports no statistics.
        """
        if not self.counts:
            raise ConsumerError(f"traffic() needs the client's statistics: set {_INTERVAL}, such as 5000")
        with self._lock:
            counts, wire = dict(self._counts), dict(self._wire)
        racks = self._racks.of({broker for _, broker in counts} | wire.keys())
        return ReceivedTraffic.of(counts, racks, self._config.get("client.rack"), wire)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials from the next request for racks on."""
        self._racks.set_sasl_credentials(username, password)


def _nothing(_: dict[str, Any]) -> None:
    """Leave a report as it is."""
