"""Produces the flights from three zones, and measures where the default partitioner would have sent them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from confluent_kafka import KafkaError, Message, Producer

from producer import AZAwareProducer, Traffic, TrafficMeter, matrix
from spark_sink.demo.topics import create_topics, delete_topics
from spark_sink.errors import DemoError

BASELINE_PREFIX = "baseline."
# Every in-sync replica acknowledges, and retries cause no duplicates.
PRODUCER_SETTINGS: Mapping[str, Any] = {
    "enable.idempotence": True,
    "compression.type": "lz4",
    # Large queues: hundreds of partitions need few large requests, not many small ones (a request has one partition).
    "linger.ms": 2_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 524_288,
    "log_level": 0,
}
_SLICE = 5_000
_FLUSH_S = 120.0
Progress = Callable[[int], None]
BytesByZone = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment:
    """Records and bytes sent, their destinations, and the time taken."""

    records: int
    bytes: int
    seconds: float
    bytes_by_zone: BytesByZone
    cross_zone_share: float


@dataclass(slots=True)
class Loader:
    """A producer per zone; flight i leaves from zone i mod 3.

    Contract: one thread at a time; `flush` returns when every record is acknowledged, and raises if one is not.
    """

    bootstrap_servers: str
    zones: Sequence[str]
    settings: Mapping[str, Any]
    _producers: list[AZAwareProducer] = field(default_factory=list)
    _refused: list[str] = field(default_factory=list)
    _records: int = 0
    _seconds: float = 0.0

    def __enter__(self) -> Self:
        for zone in self.zones:
            config = {**_client(self.bootstrap_servers, zone), **self.settings}
            self._producers.append(AZAwareProducer(config, keys="local-hrw", metadata_timeout_s=60))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for producer in self._producers:
            producer.flush(0 if kind else _FLUSH_S)
        self._producers.clear()

    def send(self, flights: pa.Table, first: int, progress: Progress) -> None:
        """Queue a slice of the data set; the records may not be acknowledged at the return.

        Args:
            flights: topic, key, value.
            first: the row number of the first record, which determines the zone.
            progress: called with the number of records queued since the last call.
        """
        began = time.monotonic()
        for batch in flights.to_batches(max_chunksize=_SLICE):
            columns = (batch.column(name).to_pylist() for name in ("topic", "key", "value"))
            for row, (topic, key, value) in enumerate(zip(*columns, strict=True), first):
                _produce(self._producers[row % len(self._producers)], topic, value, key, self._delivered)
            first += batch.num_rows
            for producer in self._producers:
                producer.poll(0)
            progress(batch.num_rows)
        self._records += flights.num_rows
        self._seconds += time.monotonic() - began

    def flush(self) -> None:
        """Wait until the brokers have acknowledged all records.

        Raises:
            DemoError: a record was refused, or the acknowledgements do not arrive.
        """
        began = time.monotonic()
        left = sum(producer.flush(_FLUSH_S) for producer in self._producers)
        self._seconds += time.monotonic() - began
        if self._refused:
            raise DemoError(f"{len(self._refused)} records were not produced, the first because: {self._refused[0]}")
        if left:
            raise DemoError(f"{left} records were not acknowledged within {_FLUSH_S:.0f} s")

    def shipment(self) -> Shipment:
        """Return the traffic so far."""
        return _shipment(self._records, self._seconds, [p.traffic() for p in self._producers])

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._refused.append(error.str())


def measure_default(
    bootstrap_servers: str, flights: pa.Table, zones: Sequence[str], settings: Mapping[str, Any], progress: Progress
) -> Shipment:
    """Send records with librdkafka's default partitioner to separate topics, count, and remove the topics.

    One replica is enough here, because the comparison is about the traffic from producers to leaders of other zones.
    """
    names = {str(t): f"{BASELINE_PREFIX}{t}" for t in flights.column("topic").unique().to_pylist()}
    create_topics(bootstrap_servers, names.values(), partitions=len(zones), replicas=1, config={})
    began = time.monotonic()
    meters = [TrafficMeter(_client(bootstrap_servers, zone)) for zone in zones]
    producers = [Producer({**_client(bootstrap_servers, zone), **settings}) for zone in zones]
    for first in range(0, flights.num_rows, _SLICE):
        batch = flights.slice(first, _SLICE)
        columns = (batch.column(name).to_pylist() for name in ("topic", "key", "value"))
        for row, (topic, key, value) in enumerate(zip(*columns, strict=True), first):
            at = row % len(zones)
            _produce(producers[at], names[topic], value, key, meters[at].delivered)
        for producer in producers:
            producer.poll(0)
        progress(batch.num_rows)
    for producer in producers:
        producer.flush(_FLUSH_S)
    seconds = time.monotonic() - began
    shipment = _shipment(flights.num_rows, seconds, [m.traffic() for m in meters])
    delete_topics(bootstrap_servers, names.values())
    return shipment


def sample_routes(flights: pa.Table, share: float) -> pa.Table:
    """Return all flights of every n-th route, ordered by volume, with at least this share of all flights."""
    counts = sorted(
        ((c["counts"], c["values"]) for c in flights.column("topic").value_counts().to_pylist()), reverse=True
    )
    step = int(1 / share)
    chosen = [topic for _, topic in counts[::step]]
    return flights.filter(pa.compute.is_in(flights.column("topic"), pa.array(chosen)))


def _client(bootstrap_servers: str, zone: str) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap_servers, "client.rack": zone, "client.id": f"demo-{zone}"}


def _produce(
    producer: Producer,
    topic: str,
    value: bytes,
    key: bytes | None,
    delivered: Callable[[KafkaError | None, Message], None],
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=delivered)
        except BufferError:
            producer.poll(0.05)  # the queue is full: let the brokers catch up
        else:
            return


def _shipment(records: int, seconds: float, traffics: Sequence[Traffic]) -> Shipment:
    zones: BytesByZone = {}
    for (here, there), count in matrix(traffics).items():
        zones.setdefault(here, {})[there] = count.bytes
    total = sum(sum(row.values()) for row in zones.values())
    local = sum(row.get(zone, 0) for zone, row in zones.items())
    return Shipment(
        records=records,
        bytes=total,
        seconds=seconds,
        bytes_by_zone=zones,
        cross_zone_share=(total - local) / total if total else 0.0,
    )
