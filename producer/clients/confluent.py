"""`AZAwareProducer`: confluent-kafka's producer that keeps records in their zone.

confluent-kafka has no custom partitioner, so this class chooses the partition and passes it to the client. The client
does all the rest: configuration, callbacks, transactions, errors.
"""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import groupby
from logging import Logger
from operator import index
from types import ModuleType
from typing import Any, ClassVar, Unpack, cast

from confluent_kafka import KafkaError, KafkaException, Producer

from producer.clients.client_statistics import Statistics
from producer.clients.configured_policy import REFRESH_S, topology_of, zone_policy
from producer.clients.delivery_reports import DeliveryReports
from producer.clients.forked import refuse_after_fork
from producer.clients.leader_watcher import LeaderWatcher
from producer.clients.produce_batch import (
    Messages,
    are_valid,
    forget_errors,
    full_queue,
    group,
    has_own_partition,
    in_runs,
    is_misplaced,
    longest_queue,
    size_of,
)
from producer.clients.produce_batch import choose as choose_partition
from producer.clients.produce_batch import count as count_message
from producer.clients.producer_options import ProducerOptions, split_options
from producer.decisions.record_bytes import headers_length
from producer.metadata_requests import Lister
from producer.partitioning.produce_interpreted import Delivered
from producer.partitioning.topic_partitioner import TopicPartitioner
from producer.partitioning.topics_in_use import TopicsInUse
from producer.traffic_cost import Traffic

# In these releases of confluent-kafka the object begins with librdkafka's client, where `DirectQueue` looks for it.
_LAYOUT_IS_KNOWN = version("confluent-kafka").startswith("2.16.")

try:
    from producer.partitioning import produce_compiled as hot
except ImportError:  # built without a C compiler
    from producer.partitioning import produce_interpreted as hot  # type: ignore[no-redef]

_produce = Producer.produce
_produce_batch = Producer.produce_batch


class AZAwareProducer(Producer):
    """A `confluent_kafka.Producer` whose records go to leaders in its own zone while the zone has leaders.

    Args:
        config: as for `confluent_kafka.Producer`; `client.rack` names the producer's zone, as in the brokers'
            `broker.rack`.
        logger: gets the client's log lines while the application polls, as the base class's argument.
        more: the settings below, and further configuration as keywords, which override `config`; as for
            `confluent_kafka.Producer`.

    Settings, as keywords:

    * `keys`: `"global"` (the default; over all partitions by the client's `partitioner`, by default Java's; order per
      key, no locality), `"local-mod"` or `"local-hrw"` (inside the producer's zone: one partition per key and zone), or
      `"ignore"` (as records without a key: full batches, no order per key). Or a mapping of regular expressions to
      modes: the first one that matches a topic's whole name counts, and `"global"` for other topics.
    * `choose`: chooses the partition of every record in place of `keys`: `"random"`, `"round_robin"`, or a callable of
      the key (bytes, or None) and the candidate partitions, which are those of the zone while it has leaders. If it
      raises an error or returns another partition, `produce` raises `PolicyError`.
    * `fallback`: zones to try in this order if the producer's zone leads no partition of a topic.
    * `aware`: default True; False only counts traffic and spreads records over all partitions.
    * `skew`: bound on the imbalance of partitions that locality may cause.
    * `racks`: rack per broker id, if the cluster cannot be asked for racks.
    * `batch_bytes`: bytes after which records without a key move to another partition; default `batch.size` if set,
      else 64 KiB.
    * `hold_s`: time that a returned leader must stay before records return to it, seconds; default 5.
    * `refresh_s`: interval at which leaders are read without other events, seconds; default 30.
    * `metadata_timeout_s`: longest wait of a topic's first record for its leaders, seconds, by default 10; while the
      cluster does not answer, the limit is for the first records of all topics together.
    * `count`: when a record counts: `"delivered"`, for delivered records only, or `"queued"`, even if it fails later.
      The default is `"delivered"` where the package was built with a C compiler, which then counts inside librdkafka;
      elsewhere `"queued"`, as `"delivered"` costs a delivery report in Python for each record there.
    * `adaptive`: whether records without a key prefer partitions with short queues, by default True (Java's
      `partitioner.adaptive.partitioning.enable`).
    * `availability_timeout_ms`: time after which records without a key avoid a partition whose leader answers none of
      its waiting records, in addition to `linger.ms`; 0, the default, for never. Needs the client's statistics, and
      `adaptive` (Java's `partitioner.availability.timeout.ms`).

    Raises:
        PolicyError: a setting has a value that cannot work.

    Contract:
    * Methods may be called from any thread, as with the base class; an explicit partition is never changed.
    * `produce` raises the errors of the base class, and then counts nothing.
    * After a fork the copy in the new process refuses every call (`ForkError`).
    * The first record of a topic waits for the topic's leaders; if they are not available, librdkafka chooses the
      partition. `produce` with an explicit partition never waits, nor does a batch in which each record has one.
    """

    # Slots, because `produce` reads one for each record, and a dictionary would take a twentieth of its time.
    __slots__ = (
        "__weakref__",
        "_deliveries",
        "_destinations",
        "_direct",
        "_longest_queue",
        "_reports",
        "_statistics",
        "_topics_in_use",
        "_topology",
        "_watcher",
    )

    compiled: ClassVar[bool] = hot.__name__.endswith("produce_compiled")
    """Whether `produce` is compiled, which needs a C compiler at the build."""
    _hot: ClassVar[ModuleType] = hot

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        logger: Logger | None = None,
        **more: Unpack[ProducerOptions],
    ) -> None:
        options, settings = split_options(more)
        config = {**(config or {}), **settings}
        policy = zone_policy(config, options)
        self._deliveries = self._hot.Deliveries(policy.partitioner.empty_is_null)
        counts_inside = self._deliveries.is_possible and options.get("count") != "queued"
        reports_count = policy.counts_deliveries and not counts_inside
        self._topics_in_use = TopicsInUse(
            replace(policy, counts_deliveries=reports_count), destinations=self._hot.Destinations
        )
        self._destinations = self._topics_in_use.destinations
        self._reports = DeliveryReports(self._topics_in_use)
        self._topology = topology = topology_of(config, options)
        drain = _drain_of(weakref.ref(self), self._reports)
        self._watcher = LeaderWatcher(
            _client_of(weakref.ref(self)),
            self._topics_in_use,
            topology,
            refresh_s=options.get("refresh_s", REFRESH_S),
            drain=drain,
        )
        self._statistics = Statistics(self._topics_in_use, self._watcher, topology)
        extended = self._reports.with_default(config if logger is None else {**config, "logger": logger})
        self._longest_queue = longest_queue(config)
        self._direct = self._hot.DirectQueue(self)
        final = self._statistics.with_callbacks(extended)
        if counts_inside:
            final["plugin.library.paths"] = self._deliveries.plugins(final.get("plugin.library.paths"))
            self._topics_in_use.count_by(self._deliveries)
            self._deliveries.making(super().__init__, final)
        else:
            super().__init__(final)
        # A callback gets a report of each record.
        if "on_delivery" not in extended and _LAYOUT_IS_KNOWN:
            self._direct.start()
        self._watcher.start_for_reports()
        refuse_after_fork(self)

    produce = hot.produce

    def _produce_uncommon(  # noqa: PLR0913, PLR0917 - the parameters of `produce`
        self,
        topic: str,
        value: str | bytes | None,
        key: str | bytes | None,
        partition: int,
        callback: Delivered | None,
        timestamp: int,
        headers: Any,  # noqa: ANN401 - as the base class types it
    ) -> None:
        partition = int(index(partition))  # refuses what the base class refuses: a float may equal -1
        if partition == -1:
            partitioner = self._topics_in_use.partitioners.get(topic)
            if partitioner is None:
                self._watcher.load(topic)
                partitioner = self._topics_in_use.partitioners.get(topic)
            if partitioner is not None and partitioner.composed:
                self._produce_chosen(partitioner, value, key, callback, timestamp, headers)
                return
            if topic in self._destinations:
                # Not through `self`: a subclass's method may have called this one.
                self._hot.produce(self, topic, value, key, partition, callback, None, timestamp, headers)
                return
        reported = self._reports.before(callback, headers, explicit=partition != -1)
        record = self, topic, value, key, partition, reported, None, timestamp, headers
        if partition == -1:
            _produce(*record)
        else:
            self._deliveries.explicitly(_produce, *record)
        self._count_uncommon(topic, partition, _size(value, key, headers))

    def _produce_chosen(  # noqa: PLR0913, PLR0917 - the parameters of `produce`
        self,
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
                self, topic, value, key, partition, self._reports.before(callback, headers), None, timestamp, headers
            )
        except KafkaException as refusal:
            self._produce_refused(refusal, topic, value, key, callback, timestamp, headers)
        else:
            partitioner.destinations.unkeyed.add(partition, _size(value, key, headers))

    def _produce_refused(  # noqa: PLR0913, PLR0917 - the parameters of `produce`
        self,
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
        self._watcher.expect_changes()
        _produce(self, topic, value, key, -1, self._reports.before(callback, headers), None, timestamp, headers)
        self._topics_in_use.count_without_leaders(topic, _size(value, key, headers))

    def produce_batch(
        self,
        topic: str,
        messages: Messages,
        partition: int = -1,
        callback: Delivered | None = None,
        on_delivery: Delivered | None = None,
    ) -> int:
        """Send many records, as `confluent_kafka.Producer.produce_batch`; a message's own `partition` is kept.

        confluent-kafka (2.16.1) drops the headers of a message here, so they do not count.

        Returns:
            Number of queued messages; the others have their error in `_error`. If the queue got full because of
            `queue.buffering.max.messages`, the queued messages are the first ones of the list. If it got full because
            of `queue.buffering.max.kbytes`, or other threads send at the same time, only `_error` names the others.

        Raises:
            TypeError, ValueError, NotImplementedError: the partition or a message is invalid; none was sent.
            KafkaException: the client refused a whole partition's messages; earlier partitions were sent.
        """
        partition = int(index(partition))  # as in `_produce_uncommon`
        theirs = on_delivery if callback is None else callback
        if not are_valid(messages):
            return super().produce_batch(topic, messages, partition, theirs)
        forget_errors(messages)
        if partition != -1:
            return self._send_batch(topic, messages, partition, theirs, explicit=True)
        if topic not in self._topics_in_use.partitioners and not all(map(has_own_partition, messages)):
            self._watcher.load(topic)
        partitioner = self._topics_in_use.partitioners.get(topic)
        groups: dict[int, Messages] = {}
        group(partitioner, messages, self._topics_in_use.advance, groups)
        room = len(messages) if self._longest_queue is None else max(0, self._longest_queue - Producer.__len__(self))
        sent, refused = 0, None
        for chosen, batch in in_runs(messages, groups, room):
            if refused is not None:  # a later message in the queue would not be expected there
                for message in batch:
                    message["_error"] = refused
                continue
            queued = self._send_batch(topic, batch, chosen, theirs)
            sent += queued
            if queued < len(batch) and len(messages) > room:
                refused = full_queue(batch)
        misplaced = [message for message in messages if is_misplaced(message)] if partitioner is not None else []
        if misplaced:  # as in `_produce_refused`
            self._watcher.expect_changes()
            forget_errors(misplaced)
            sent += self._send_batch(topic, misplaced, -1, theirs)
        return sent

    def _send_batch(
        self, topic: str, messages: Messages, partition: int, callback: Delivered | None, *, explicit: bool = False
    ) -> int:
        """Send messages to one partition (-1: librdkafka chooses), and count the queued ones."""
        reported = self._reports.before(callback, explicit=explicit)
        given = self._reports.in_batch(messages, callback, explicit=explicit)
        sent = 0
        for own, run in groupby(given, lambda one: explicit or has_own_partition(one)):
            send = partial(self._deliveries.explicitly, _produce_batch) if own else _produce_batch
            sent += send(self, topic, list(run), partition, reported)
        partitioner = self._topics_in_use.partitioners.get(topic)
        for message, one in zip(messages, given, strict=True):
            if "_error" in one:
                message["_error"] = one["_error"]
            elif partitioner is None or explicit or partition == -1:
                self._count_uncommon(topic, partition, size_of(message))
            else:
                count_message(partitioner, message, partition)
        return sent

    def _count_uncommon(self, topic: str, partition: int, size: int) -> None:
        partitioner = self._topics_in_use.partitioners.get(topic)
        if partitioner is None or partition < 0:
            self._topics_in_use.count_without_leaders(topic, size, partition)
            if partition >= 0:
                self._watcher.load_later(topic)
        else:
            partitioner.count_explicit(partition, size)

    def traffic(self) -> Traffic:
        """Return the traffic so far, of queued or delivered records as set by `count`; bytes before compression."""
        return self._statistics.complete(self._topics_in_use.traffic())

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use other credentials, as the base class does, also for reading racks."""
        super().set_sasl_credentials(username, password)
        self._topology.set_sasl_credentials(username, password)

    def refresh_leaders(self) -> None:
        """Request that leaders are read again soon; returns immediately."""
        self._watcher.refresh_soon()

    def close(self, *args: object, **kwargs: object) -> bool:
        """Stop watching the leaders and close, as the base class does, which takes any arguments and ignores them."""
        self._watcher.close()
        self._direct.close()
        return super().close(*args, **kwargs)

    def __exit__(self, *exception: object) -> bool | None:
        self._watcher.close()
        self._direct.close()
        return super().__exit__(*exception)


def _client_of(owner: "weakref.ref[AZAwareProducer]") -> Callable[[], Lister | None]:
    def client() -> Lister | None:
        producer = owner()
        # Not the methods of an application's subclass, which may take other arguments or count their calls.
        return None if producer is None else cast("Lister", super(AZAwareProducer, producer))

    return client


def _drain_of(owner: "weakref.ref[AZAwareProducer]", reports: DeliveryReports) -> Callable[[], bool]:
    def drain() -> bool:
        producer = owner() if reports.may_poll() else None
        if producer is not None:
            super(AZAwareProducer, producer).poll(0)
        return producer is not None

    return drain


def _size(value: str | bytes | None, key: str | bytes | None, headers: object) -> int:
    return size_of({"value": value, "key": key}) + (0 if headers is None else headers_length(headers))
