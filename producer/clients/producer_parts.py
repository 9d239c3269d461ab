"""The parts of an `AZAwareProducer`, in one object: an attribute of a subclass cannot replace one of them."""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import index
from types import ModuleType
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from producer.clients.client_statistics import Statistics
from producer.clients.configured_policy import REFRESH_S, topology_of
from producer.clients.delivery_reports import DeliveryReports
from producer.clients.leader_watcher import LeaderWatcher
from producer.clients.produce_batch import Messages, has_own_partition, longest_queue, size_of, without_gaps
from producer.clients.produce_batch import choose as choose_partition
from producer.clients.produce_batch import count as count_message
from producer.clients.producer_options import ProducerOptions
from producer.decisions.producer_settings import ZonePolicy
from producer.decisions.record_bytes import headers_length
from producer.metadata_requests import Lister
from producer.partitioning.partition_of_record import TopicPartitioner
from producer.partitioning.produce_interpreted import Delivered
from producer.partitioning.topics_in_use import TopicsInUse
from producer.traffic_cost import Traffic

_produce = Producer.produce
_produce_batch = Producer.produce_batch


class ProducerParts:
    """What the methods of an `AZAwareProducer` use; it does not keep the producer alive.

    Args:
        owner: the producer.
        client: returns what the leaders are read with; None when the producer is gone.
        hot: the module of `produce`, compiled or not.
        policy: of the producer.
        config: librdkafka's properties, with callbacks.
        options: the settings of the producer.

    Attributes:
        counts_inside: whether records are counted inside librdkafka.
    """

    __slots__ = (
        "_produce",
        "counts_inside",
        "deliveries",
        "direct",
        "longest_queue",
        "reports",
        "statistics",
        "topics_in_use",
        "topology",
        "watcher",
    )

    def __init__(  # noqa: PLR0913 - each is named at the call
        self,
        owner: Producer,
        client: Callable[[], Lister | None],
        *,
        hot: ModuleType,
        policy: ZonePolicy,
        config: Mapping[str, Any],
        options: ProducerOptions,
    ) -> None:
        self._produce = hot.produce
        self.deliveries = hot.Deliveries(policy.partitioner.empty_is_null)
        self.counts_inside = self.deliveries.is_possible and options.get("count") != "queued"
        reports_count = policy.counts_deliveries and not self.counts_inside
        self.topics_in_use = TopicsInUse(
            replace(policy, counts_deliveries=reports_count), destinations=hot.Destinations
        )
        self.reports = DeliveryReports(self.topics_in_use)
        self.topology = topology_of(config, options)
        self.watcher = LeaderWatcher(
            client,
            self.topics_in_use,
            self.topology,
            refresh_s=options.get("refresh_s", REFRESH_S),
            drain=_drain_of(weakref.ref(owner), self.reports),
        )
        self.statistics = Statistics(self.topics_in_use, self.watcher, self.topology)
        self.longest_queue = longest_queue(config)
        self.direct = hot.DirectQueue(owner)
        if self.counts_inside:  # after the reports, which then do not count
            self.topics_in_use.count_by(self.deliveries)

    def traffic(self) -> Traffic:
        """Return the traffic so far."""
        return self.statistics.complete(self.topics_in_use.traffic())

    def produce_uncommon(  # noqa: PLR0913, PLR0917 - the parameters of `produce`
        self,
        producer: Producer,
        topic: str,
        value: str | bytes | None,
        key: str | bytes | None,
        partition: int,
        callback: Delivered | None,
        timestamp: int,
        headers: Any,  # noqa: ANN401 - as the base class types it
    ) -> None:
        """Send a record with an explicit partition, of a new topic, or to a partition of the application's choice."""
        partition = int(index(partition))  # refuses what the base class refuses: a float may equal -1
        if partition == -1:
            partitioner = self.topics_in_use.partitioners.get(topic)
            if partitioner is None:
                self.watcher.load(topic)
                partitioner = self.topics_in_use.partitioners.get(topic)
            if partitioner is not None and partitioner.composed:
                self._produce_chosen(producer, partitioner, value, key, callback, timestamp, headers)
                return
            if topic in self.topics_in_use.destinations:
                # Not through the producer: a subclass's method may have called this one.
                self._produce(producer, topic, value, key, partition, callback, None, timestamp, headers)
                return
        reported = self.reports.before(callback, headers, explicit=partition != -1)
        record = producer, topic, value, key, partition, reported, None, timestamp, headers
        if partition == -1:
            _produce(*record)
        else:
            self.deliveries.explicitly(_produce, *record)
        self.count_uncommon(topic, partition, _size(value, key, headers))

    def _produce_chosen(  # noqa: PLR0913, PLR0917 - the parameters of `produce`
        self,
        producer: Producer,
        partitioner: TopicPartitioner,
        value: str | bytes | None,
        key: str | bytes | None,
        callback: Delivered | None,
        timestamp: int,
        headers: Any,  # noqa: ANN401 - as the base class types it
    ) -> None:
        """Send a record to the partition that the application's partitioner chooses."""
        topic, partition = partitioner.topic, choose_partition(partitioner, {"key": key})
        try:
            _produce(
                producer, topic, value, key, partition, self.reports.before(callback, headers), None, timestamp, headers
            )
        except KafkaException as refusal:
            self.produce_refused(producer, refusal, topic, value, key, callback, timestamp, headers)
        else:
            partitioner.destinations.unkeyed.add(partition, _size(value, key, headers))

    def produce_refused(  # noqa: PLR0913, PLR0917 - the parameters of `produce`
        self,
        producer: Producer,
        refusal: KafkaException,
        topic: str,
        value: str | bytes | None,
        key: str | bytes | None,
        callback: Delivered | None,
        timestamp: int,
        headers: Any,  # noqa: ANN401 - as the base class types it
    ) -> None:
        """Let librdkafka choose for a topic that was recreated with fewer partitions; raise any other refusal."""
        if refusal.args[0].code() != KafkaError._UNKNOWN_PARTITION:  # noqa: SLF001 - its constant
            raise refusal
        self.watcher.expect_changes()
        _produce(producer, topic, value, key, -1, self.reports.before(callback, headers), None, timestamp, headers)
        self.topics_in_use.count_without_leaders(topic, _size(value, key, headers))

    def send_batch(  # noqa: PLR0913 - the parameters of `produce_batch`
        self,
        producer: Producer,
        topic: str,
        messages: Messages,
        partition: int,
        callback: Delivered | None,
        *,
        explicit: bool = False,
    ) -> int:
        """Send messages to one partition (-1: librdkafka chooses), and count the queued ones."""
        reported = self.reports.before(callback, explicit=explicit)
        given = self.reports.in_batch(messages, callback, explicit=explicit)
        sent = 0
        for own, run in without_gaps(groupby(given, lambda one: explicit or has_own_partition(one))):
            send = partial(self.deliveries.explicitly, _produce_batch) if own else _produce_batch
            sent += send(producer, topic, run, partition, reported)
        partitioner = self.topics_in_use.partitioners.get(topic)
        for message, one in zip(messages, given, strict=True):
            if "_error" in one:
                message["_error"] = one["_error"]
            elif partitioner is None or explicit or partition == -1:
                self.count_uncommon(topic, partition, size_of(message))
            else:
                count_message(partitioner, message, partition)
        return sent

    def count_uncommon(self, topic: str, partition: int, size: int) -> None:
        """Count a record whose partition the application or librdkafka has chosen (-1)."""
        partitioner = self.topics_in_use.partitioners.get(topic)
        if partitioner is None or partition < 0:
            self.topics_in_use.count_without_leaders(topic, size, partition)
            if partition >= 0:
                self.watcher.load_later(topic)
        else:
            partitioner.count_explicit(partition, size)


def _drain_of(owner: "weakref.ref[Producer]", reports: DeliveryReports) -> Callable[[], bool]:
    def drain() -> bool:
        producer = owner() if reports.may_poll() else None
        if producer is not None:
            Producer.poll(producer, 0)  # not the method of an application's subclass
        return producer is not None

    return drain


def _size(value: str | bytes | None, key: str | bytes | None, headers: object) -> int:
    return size_of({"value": value, "key": key}) + (0 if headers is None else headers_length(headers))
