"""kafka-python's bytes on the wire, counted concurrently with its own threads."""

import threading
from typing import Any

from kafka.metrics import KafkaMetric, Metrics
from kafka.metrics.stats import Rate

from producer import AZAwarePartitioner
from producer.clients.kafka_python_wire_bytes import WireTotals
from tests.unit.producer.clients.test_kafka_python import choose, metadata

LIMIT_S = 10.0


class Unconnected:
    """What a watched producer has, without a connection."""

    def __init__(self, metrics: Metrics) -> None:
        self._accumulator = self._metrics = metrics

    def send(self) -> None:
        """Send nothing."""


class Meeting(Metrics):
    """Metrics in which a new reporter and a new connection each hold one lock before either asks for the other's."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped there
        self.sensor_is_held = threading.Event()
        self.metrics_are_held = threading.Event()

    def add_reporter(self, reporter: object) -> None:
        """Hold the metrics, as the base class does, until the connection holds its sensor."""
        with self._lock:
            self.metrics_are_held.set()
            assert self.sensor_is_held.wait(LIMIT_S)
            super().add_reporter(reporter)  # type: ignore[no-untyped-call]  # untyped there

    def register_metric(self, metric: KafkaMetric) -> None:
        """Runs inside `Sensor.add`, so under the sensor's lock."""
        if metric.metric_name.name == "outgoing-byte-rate" and threading.current_thread().name == "network":
            self.sensor_is_held.set()
            assert self.metrics_are_held.wait(LIMIT_S)
        super().register_metric(metric)  # type: ignore[no-untyped-call]  # untyped there


def connect(metrics: Any, node: str) -> Any:
    """Make a node's sensor as a new connection of kafka-python does: two metrics, one after the other."""
    sensor = metrics.sensor(f"node-{node}.bytes-sent")
    for name in ("request-size-avg", "outgoing-byte-rate"):
        sensor.add(metrics.metric_name(name, f"producer-node-metrics.node-{node}"), Rate())
    return sensor


def test_watching_and_a_new_connection_never_wait_for_each_other() -> None:
    """One held the metrics and wanted the sensor, the other the reverse: the application hung at its start."""
    metrics: Any = Meeting()
    sensor = metrics.sensor("node-1.bytes-sent")
    rate = metrics.metric_name("outgoing-byte-rate", "producer-node-metrics.node-1")
    # The rate of a connection whose other metrics are still to come: the reporter finds the sensor at once.
    metrics.add_metric(metrics.metric_name(rate.name, rate.group, tags={"registered": "before"}), Rate())
    totals: list[WireTotals] = []
    threads = [
        threading.Thread(target=lambda: sensor.add(rate, Rate()), name="network", daemon=True),
        threading.Thread(target=lambda: totals.append(WireTotals(metrics)), name="application", daemon=True),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert not [thread.name for thread in threads if thread.is_alive()]
    sensor.record(100)
    assert totals[0].by_node() == {1: 100}


def test_bytes_count_from_the_watch_on_and_once_per_node() -> None:
    """Of connections that were there before, and of those that come later; bootstrap connections name no broker."""
    metrics: Any = Metrics()
    early = connect(metrics, "1")
    early.record(5)
    totals = WireTotals(metrics)
    sensors: dict[str, Any] = {"1": early, "2": connect(metrics, "2"), "bootstrap-0": connect(metrics, "bootstrap-0")}
    for size in (10, 20):
        for sensor in sensors.values():
            sensor.record(size)
    assert totals.by_node() == {1: 30, 2: 30, -1: 30}


def test_bytes_stay_in_the_zone_that_their_broker_had() -> None:
    """A broker that came back in another rack took its history with it: the counter of its old zone fell."""
    metrics: Any = Metrics()
    producer: Any = Unconnected(metrics)
    partitioner = AZAwarePartitioner(rack="az-a")
    partitioner.watch(producer)
    sensor = connect(metrics, "1")
    seen = []
    for rack in ("az-a", "az-b", "az-a"):
        choose(partitioner, metadata([1], [rack]))
        sensor.record(100)
    seen.append(partitioner.traffic().wire_bytes)
    choose(partitioner, metadata([1], ["az-b"]))
    seen.append(partitioner.traffic().wire_bytes)
    assert seen == [{"az-a": 200, "az-b": 100}] * 2


def test_bytes_before_the_first_record_belong_to_the_zone_too() -> None:
    """The racks are first read for a record: a scrape before it put the bytes into the zone "unknown" for ever."""
    metrics: Any = Metrics()
    producer: Any = Unconnected(metrics)
    partitioner = AZAwarePartitioner(rack="az-a")
    partitioner.watch(producer)
    connect(metrics, "1").record(100)
    assert partitioner.traffic().wire_bytes == {}
    choose(partitioner, metadata([1], ["az-a"]))
    assert partitioner.traffic().wire_bytes == {"az-a": 100}
