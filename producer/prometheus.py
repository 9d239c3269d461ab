"""Traffic as Prometheus metrics: `REGISTRY.register(TrafficCollector({"ingest": producer}))`."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from producer.traffic_cost import Traffic


class HasTraffic(Protocol):
    """An object that counts its traffic: both producers, the partitioner, the meter."""

    def traffic(self) -> Traffic:
        """Return the traffic so far."""
        ...


class TrafficCollector(Collector):
    """Collects the traffic of named producers at a scrape, without cost in between.

    Args:
        producers: producers by name, which becomes their label.
        price_per_gb: price per 10^9 bytes that left their zone.
    """

    def __init__(self, producers: Mapping[str, HasTraffic], *, price_per_gb: float = 0.01) -> None:
        self._producers = producers
        self._price_per_gb = price_per_gb

    def describe(self) -> Iterator[Metric]:
        """Describe nothing, because the registration must not read the producers."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Return the current metrics of all producers."""
        prefix = "azimuth_producer"
        records = CounterMetricFamily(
            f"{prefix}_records",
            "Records by topic and zone of the leader.",
            labels=["producer", "rack", "topic", "zone"],
        )
        sent = CounterMetricFamily(
            f"{prefix}_bytes",
            "Bytes of keys, values and headers by topic and zone of the leader.",
            labels=["producer", "rack", "topic", "zone"],
        )
        reasons = CounterMetricFamily(
            f"{prefix}_reason_records",
            "Records by the reason for their partition.",
            labels=["producer", "rack", "reason"],
        )
        wire = CounterMetricFamily(
            f"{prefix}_wire_bytes", "Bytes on the wire by zone of the broker.", labels=["producer", "rack", "zone"]
        )
        wire_by_topic = CounterMetricFamily(
            f"{prefix}_topic_wire_bytes",
            "Bytes of batches on the wire by topic and zone of the leader, where the client counts them.",
            labels=["producer", "rack", "topic", "zone"],
        )
        share = GaugeMetricFamily(
            f"{prefix}_cross_zone_share", "Part of the bytes that left their zone.", labels=["producer", "rack"]
        )
        cost = CounterMetricFamily(
            f"{prefix}_cost", "Money for bytes that left their zone, before compression.", labels=["producer", "rack"]
        )
        wire_cost = CounterMetricFamily(
            f"{prefix}_wire_cost", "Money for bytes on the wire that left their zone.", labels=["producer", "rack"]
        )
        copied = CounterMetricFamily(
            f"{prefix}_replicated_bytes",
            "Bytes that brokers copied to replicas in other zones, before compression.",
            labels=["producer", "rack"],
        )
        copied_cost = CounterMetricFamily(
            f"{prefix}_replication_cost",
            "Money for copies to replicas in other zones, which no client can avoid.",
            labels=["producer", "rack"],
        )
        for name, producer in self._producers.items():
            traffic = producer.traffic()
            own = [name, traffic.rack or ""]
            for (topic, zone), count in traffic.topics.items():
                records.add_metric([*own, topic, zone], count.records)
                sent.add_metric([*own, topic, zone], count.bytes)
            for reason, count in traffic.reasons.items():
                reasons.add_metric([*own, reason.value], count.records)
            for zone, amount in traffic.wire_bytes.items():
                wire.add_metric([*own, zone], amount)
            for (topic, zone), count in ({} if traffic.wire_estimated else traffic.wire_topics).items():
                wire_by_topic.add_metric([*own, topic, zone], count.bytes)
            share.add_metric(own, traffic.cross_zone_share)
            cost.add_metric(own, traffic.cost(self._price_per_gb))
            on_the_wire = traffic.wire_cost(self._price_per_gb)
            if on_the_wire is not None:
                wire_cost.add_metric(own, on_the_wire)
            replication = traffic.replication_cost(self._price_per_gb)
            if traffic.replicated_bytes is not None and replication is not None:
                copied.add_metric(own, traffic.replicated_bytes)
                copied_cost.add_metric(own, replication)
        yield from (records, sent, reasons, wire, wire_by_topic, share, cost, wire_cost, copied, copied_cost)
