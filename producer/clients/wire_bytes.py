"""kafka-python's bytes on the wire, by broker, since the first one."""

from collections.abc import Mapping
from typing import Any

from kafka.metrics import KafkaMetric, Metrics
from kafka.metrics.metrics_reporter import AbstractMetricsReporter
from kafka.metrics.stats import Total

_GROUP = "producer-node-metrics.node-"


class WireTotals(AbstractMetricsReporter):
    """Adds a total beside kafka-python's rates, which forget, at the moment a connection to a broker is made.

    A producer's metrics call `metric_change` when they register the rate of a new node, before its first byte.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._totals: dict[str, Total] = {}
        metrics.add_reporter(self)

    def init(self, metrics: list[KafkaMetric]) -> None:
        """Take the nodes that are connected already; what they sent before is not known."""
        for metric in metrics:
            self.metric_change(metric)

    def metric_change(self, metric: KafkaMetric) -> None:
        """Add a total to a new node's sensor."""
        group = metric.metric_name.group
        if metric.metric_name.name != "outgoing-byte-rate" or not group.startswith(_GROUP):
            return
        node = group.removeprefix(_GROUP)
        sensor = self._metrics.get_sensor(f"node-{node}.bytes-sent")
        if node not in self._totals and sensor is not None:
            self._totals[node] = Total()
            name = self._metrics.metric_name("outgoing-byte-total", group, "Bytes sent, since the connection was made.")
            sensor.add(name, self._totals[node])

    def metric_removal(self, metric: KafkaMetric) -> None:
        """Keep the total: the bytes were sent."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Nothing to configure."""

    def close(self) -> None:
        """Nothing to close."""

    def by_node(self) -> dict[int, int]:
        """Bytes sent per broker id; bootstrap connections, which name no broker, under -1."""
        sent: dict[int, int] = {}
        for node, total in self._totals.items():
            broker = int(node) if node.isdigit() else -1
            sent[broker] = sent.get(broker, 0) + int(total.measure(None, None))
        return sent
