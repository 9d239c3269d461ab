"""kafka-python's bytes on the wire since the start, by broker."""

from collections.abc import Mapping
from typing import Any

from kafka.metrics import KafkaMetric, Metrics
from kafka.metrics.metrics_reporter import AbstractMetricsReporter
from kafka.metrics.stats import Total

_GROUP = "producer-node-metrics.node-"


class WireTotals(AbstractMetricsReporter):
    """Adds a total to kafka-python's rates, which forget old bytes, at each new connection to a broker.

    A producer's metrics call `metric_change` when they register the rate of a new node, before its first byte.

    Contract: `init` and `metric_change` run under kafka-python's lock of all metrics, in the application's thread and
    in the network thread, which may also hold a sensor's lock. So they take no lock: `Sensor.add` would wait for the
    sensor's lock while the network thread holds it and waits for the metrics' lock.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._totals: dict[str, Total] = {}
        metrics.add_reporter(self)

    def init(self, metrics: list[KafkaMetric]) -> None:
        """Add totals for nodes that are already connected; their earlier bytes are unknown."""
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
            sensor._stats.append(self._totals[node])  # noqa: SLF001 - the only way without a lock; append is atomic

    def metric_removal(self, metric: KafkaMetric) -> None:
        """Keep the total: the bytes were sent."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Nothing to configure."""

    def close(self) -> None:
        """Nothing to close."""

    def by_node(self) -> dict[int, int]:
        """Return bytes sent per broker id; bootstrap connections, which have no broker id, count as -1."""
        sent: dict[int, int] = {}
        for node, total in list(self._totals.items()):  # a copy, because the network thread adds to it
            broker = int(node) if node.isdigit() else -1
            sent[broker] = sent.get(broker, 0) + int(total.measure(None, None))
        return sent
