"""`AZAwareProducer`: confluent-kafka's producer that keeps records in their zone.

confluent-kafka has no custom partitioner, so this class chooses the partition and passes it to the client. The client
does all the rest: configuration, callbacks, transactions, errors.
"""

import weakref
from collections.abc import Callable, Mapping
from importlib.metadata import version
from logging import Logger
from operator import index
from types import ModuleType
from typing import Any, ClassVar, Unpack, cast

from confluent_kafka import Producer

from assignors.clients import flat
from producer.clients.configured_policy import zone_policy
from producer.clients.forked import refuse_after_fork
from producer.clients.produce_batch import (
    Messages,
    are_valid,
    forget_errors,
    full_queue,
    group,
    has_own_partition,
    in_runs,
    is_misplaced,
)
from producer.clients.producer_options import ProducerOptions, split_options
from producer.clients.producer_parts import ProducerParts
from producer.metadata_requests import Lister
from producer.partitioning.produce_interpreted import Delivered, Destinations
from producer.traffic_cost import Traffic

# In these releases of confluent-kafka the object begins with librdkafka's client, where `DirectQueue` looks for it.
_LAYOUT_IS_KNOWN = version("confluent-kafka").startswith("2.16.")

try:
    from producer.partitioning import produce_compiled as hot
except ImportError:  # built without a C compiler
    from producer.partitioning import produce_interpreted as hot  # type: ignore[no-redef]


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
        TypeError: the configuration is missing.

    Contract:
    * Methods may be called from any thread, as with the base class; an explicit partition is never changed.
    * `produce` raises the errors of the base class, and then counts nothing.
    * After a fork the copy in the new process refuses every call (`ForkError`).
    * The first record of a topic waits for the topic's leaders; if they are not available, librdkafka chooses the
      partition. `produce` with an explicit partition never waits, nor does a batch in which each record has one.
    """

    # Slots, because `produce` reads one for each record, and a dictionary would take a twentieth of its time. Their
    # names are none that an application's subclass may have.
    _kafka_azimuth: ProducerParts
    _kafka_azimuth_destinations: dict[str, Destinations]
    __slots__ = (
        "__weakref__",
        "_kafka_azimuth",
        "_kafka_azimuth_destinations",
    )

    compiled: ClassVar[bool] = hot.__name__.endswith("produce_compiled")
    """Whether `produce` is compiled, which needs a C compiler at the build."""
    _kafka_azimuth_hot: ClassVar[ModuleType] = hot

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        logger: Logger | None = None,
        **more: Unpack[ProducerOptions],
    ) -> None:
        options, settings = split_options(more)
        if config is None and not settings:
            raise TypeError("the configuration is missing")
        config = flat({**({} if config is None else config), **settings})
        policy = zone_policy(config, options)
        parts = ProducerParts(
            self,
            _client_of(weakref.ref(self)),
            hot=self._kafka_azimuth_hot,
            policy=policy,
            config=config,
            options=options,
        )
        if not hasattr(self, "_kafka_azimuth"):  # the base class refuses a second call: the open client keeps its parts
            _take(self, parts)
        extended = parts.reports.with_default(config if logger is None else {**config, "logger": logger})
        final = parts.statistics.with_callbacks(extended)
        if parts.counts_inside:
            final["plugin.library.paths"] = parts.deliveries.plugins(final.get("plugin.library.paths"))
            parts.deliveries.making(super().__init__, final)
        else:
            super().__init__(final)
        _take(self, parts)
        # A callback gets a report of each record.
        if "on_delivery" not in extended and _LAYOUT_IS_KNOWN:
            parts.direct.start()
        parts.watcher.start_for_reports()
        refuse_after_fork(self)

    produce = hot.produce

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
        parts = self._kafka_azimuth
        partition = int(index(partition))  # as in `produce_uncommon`
        theirs = on_delivery if callback is None else callback
        if not messages or not are_valid(messages):
            return super().produce_batch(topic, messages, partition, theirs)
        forget_errors(messages)
        if partition != -1:
            return parts.send_batch(self, topic, messages, partition, theirs, explicit=True)
        if topic not in parts.topics_in_use.partitioners and not all(map(has_own_partition, messages)):
            parts.watcher.load(topic)
        partitioner = parts.topics_in_use.partitioners.get(topic)
        groups: dict[int, Messages] = {}
        group(partitioner, messages, parts.topics_in_use.advance, groups)
        room = len(messages) if parts.longest_queue is None else max(0, parts.longest_queue - Producer.__len__(self))
        sent, refused = 0, None
        for chosen, batch in in_runs(messages, groups, room):
            if refused is not None:  # a later message in the queue would not be expected there
                for message in batch:
                    message["_error"] = refused
                continue
            queued = parts.send_batch(self, topic, batch, chosen, theirs)
            sent += queued
            if queued < len(batch) and len(messages) > room:
                refused = full_queue(batch)
        misplaced = [message for message in messages if is_misplaced(message)] if partitioner is not None else []
        if misplaced:  # as in `produce_refused`
            parts.watcher.expect_changes()
            forget_errors(misplaced)
            sent += parts.send_batch(self, topic, misplaced, -1, theirs)
        return sent

    def traffic(self) -> Traffic:
        """Return the traffic so far, of queued or delivered records as set by `count`; bytes before compression."""
        return self._kafka_azimuth.traffic()

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use other credentials, as the base class does, also for reading racks."""
        super().set_sasl_credentials(username, password)
        self._kafka_azimuth.topology.set_sasl_credentials(username, password)

    def refresh_leaders(self) -> None:
        """Request that leaders are read again soon; returns immediately."""
        self._kafka_azimuth.watcher.refresh_soon()

    def close(self, *args: object, **kwargs: object) -> bool:
        """Stop watching the leaders and close, as the base class does, which takes any arguments and ignores them."""
        _stop(self)
        return super().close(*args, **kwargs)

    def __exit__(self, *exception: object) -> bool | None:
        _stop(self)
        return super().__exit__(*exception)


def _take(producer: AZAwareProducer, parts: ProducerParts) -> None:
    """Set the parts of a producer. A subclass may have a `__setattr__` for its own attributes."""
    object.__setattr__(producer, "_kafka_azimuth", parts)
    object.__setattr__(producer, "_kafka_azimuth_destinations", parts.topics_in_use.destinations)


def _stop(producer: AZAwareProducer) -> None:
    """End what uses the client; before the constructor has run, which may fail in a subclass, nothing does."""
    parts: ProducerParts | None = getattr(producer, "_kafka_azimuth", None)
    if parts is not None:
        parts.watcher.close()
        parts.direct.close()


def _client_of(owner: "weakref.ref[AZAwareProducer]") -> Callable[[], Lister | None]:
    def client() -> Lister | None:
        producer = owner()
        # Not the methods of an application's subclass, which may take other arguments or count their calls.
        return None if producer is None else cast("Lister", super(AZAwareProducer, producer))

    return client
