"""`AZAwareProducer`: confluent-kafka's producer that keeps records in their zone.

confluent-kafka has no custom partitioner, so this class chooses the partition and passes it to the client. The client
does all the rest: configuration, callbacks, transactions, errors.
"""

import weakref
from collections.abc import Callable, Iterable, Mapping
from logging import Logger
from types import ModuleType
from typing import Any, ClassVar

from confluent_kafka import KafkaError, KafkaException, Producer

from producer.clients.client_statistics import Statistics
from producer.clients.default_mapping import client_partitioner, log_default
from producer.clients.delivery_reports import DeliveryReports
from producer.clients.forked import refuse_after_fork
from producer.clients.leader_watcher import LeaderWatcher
from producer.clients.produce_batch import Messages, are_valid, count, forget_errors, group, is_misplaced, size_of
from producer.decisions.leader_locality import Racks
from producer.decisions.producer_settings import KeyMode, ZonePolicy, counts_deliveries, key_mode, zone_order
from producer.decisions.skew_guard import SkewGuard
from producer.partitioning.produce_interpreted import Delivered
from producer.partitioning.topics_in_use import TopicsInUse
from producer.topology import Topology
from producer.traffic_counts import Traffic

try:
    from producer.partitioning import produce_compiled as hot
except ImportError:  # built without a C compiler
    from producer.partitioning import produce_interpreted as hot  # type: ignore[no-redef]

_produce = Producer.produce
_BATCH_BYTES = 65_536


class AZAwareProducer(Producer):
    """A `confluent_kafka.Producer` whose records go to leaders in its own zone while the zone has leaders.

    Args:
        config: as for `confluent_kafka.Producer`; `client.rack` names the producer's zone, as in the brokers'
            `broker.rack`.
        more: further configuration as keywords, which override `config`; as for `confluent_kafka.Producer`.
        keys: `"global"` (over all partitions by the client's `partitioner`, by default Java's; order per key, no
            locality), `"local-mod"` or `"local-hrw"` (inside the producer's zone: one partition per key and zone).
        fallback: zones to try in this order if the producer's zone leads no partition of a topic.
        aware: False only counts traffic and spreads records over all partitions.
        skew: bound on the imbalance of partitions that locality may cause.
        racks: rack per broker id, if the cluster cannot be asked for racks.
        batch_bytes: bytes after which records without a key move to another partition; default `batch.size` if set,
            else 64 KiB.
        hold_s: time that a returned leader must stay before records return to it, seconds.
        refresh_s: interval at which leaders are read without other events, seconds.
        metadata_timeout_s: longest wait of a topic's first record for its leaders, seconds; while the cluster does not
            answer, of the first records of all topics together.
        count: when a record counts: `"queued"`, or `"delivered"` for delivered records only, which costs a delivery
            report for each record.
        logger: gets the client's log lines while the application polls, as the base class's argument.

    Raises:
        PolicyError: a setting has a value that cannot work.

    Contract:
    * Methods may be called from any thread, as with the base class; an explicit partition is never changed.
    * `produce` raises the errors of the base class, and then counts nothing.
    * After a fork the copy in the new process refuses every call (`ForkError`).
    * The first record of a topic waits for the topic's leaders; if they are not available, librdkafka chooses the
      partition.
    """

    # Slots, because `produce` reads one for each record, and a dictionary would take a twentieth of its time.
    __slots__ = ("__weakref__", "_destinations", "_reports", "_statistics", "_topics_in_use", "_topology", "_watcher")

    compiled: ClassVar[bool] = hot.__name__.endswith("produce_compiled")
    """Whether `produce` is compiled, which needs a C compiler at the build."""
    _hot: ClassVar[ModuleType] = hot

    def __init__(  # noqa: PLR0913 - one setting each, keyword-only
        self,
        config: Mapping[str, Any] | None = None,
        *,
        keys: str = "global",
        fallback: Iterable[str] = (),
        aware: bool = True,
        skew: SkewGuard | None = None,
        racks: Racks | None = None,
        batch_bytes: int | None = None,
        hold_s: float = 5.0,
        refresh_s: float = 30.0,
        metadata_timeout_s: float = 10.0,
        count: str = "queued",
        logger: Logger | None = None,
        **more: Any,  # noqa: ANN401 - settings of the client
    ) -> None:
        config = {**(config or {}), **more}
        policy = zone_policy(config, keys, fallback, batch_bytes, hold_s=hold_s, aware=aware, skew=skew, count=count)
        self._topics_in_use = TopicsInUse(policy, destinations=self._hot.Destinations)
        self._destinations = self._topics_in_use.destinations
        self._reports = DeliveryReports(self._topics_in_use)
        self._topology = topology = Topology(config, racks, metadata_timeout_s)
        drain = _drain_of(weakref.ref(self), self._reports)
        self._watcher = LeaderWatcher(
            weakref.ref(self), self._topics_in_use, topology, refresh_s=refresh_s, drain=drain
        )
        self._statistics = Statistics(self._topics_in_use, self._watcher, topology)
        extended = self._reports.with_default(config if logger is None else {**config, "logger": logger})
        super().__init__(self._statistics.with_callbacks(extended))
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
        if partition == -1:
            self._watcher.load(topic)
            if topic in self._destinations:
                # Not through `self`: a subclass's method may have called this one.
                self._hot.produce(self, topic, value, key, partition, callback, None, timestamp, headers)
                return
        reported = self._reports.before(callback, headers, explicit=partition != -1)
        _produce(self, topic, value, key, partition, reported, None, timestamp, headers)
        self._count_uncommon(topic, partition, [{"value": value, "key": key, "headers": headers}])

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
        self._topics_in_use.count_without_leaders(topic, size_of({"value": value, "key": key, "headers": headers}))

    def produce_batch(
        self,
        topic: str,
        messages: Messages,
        partition: int = -1,
        callback: Delivered | None = None,
        on_delivery: Delivered | None = None,
    ) -> int:
        """Send many records, as `confluent_kafka.Producer.produce_batch`; a message's own `partition` is kept.

        Returns:
            Number of queued messages; the others have their error in `_error`.

        Raises:
            TypeError, ValueError, NotImplementedError: a message is invalid; none was sent.
            KafkaException: the client refused a whole partition's messages; earlier partitions were sent.
        """
        delivered = self._reports.before(on_delivery if callback is None else callback, explicit=partition != -1)
        if topic not in self._topics_in_use.partitioners:
            self._watcher.load(topic)
        partitioner = self._topics_in_use.partitioners.get(topic)
        if not are_valid(messages):
            return super().produce_batch(topic, messages, partition, delivered)
        forget_errors(messages)
        if partitioner is None or partition != -1:
            sent = super().produce_batch(topic, messages, partition, delivered)
            queued = [message for message in messages if "_error" not in message]
            self._count_uncommon(topic, partition, queued)
            return sent
        groups: dict[int, Messages] = {}
        group(partitioner, messages, self._topics_in_use.advance, groups)
        sent = 0
        misplaced: Messages = []
        for chosen, batch in groups.items():
            sent += super().produce_batch(topic, batch, chosen, delivered)
            for message in batch:
                if "_error" not in message:
                    count(partitioner, message, chosen)
                elif is_misplaced(message):
                    misplaced.append(message)
        return sent + self._batch_refused(topic, misplaced, delivered)

    def _batch_refused(self, topic: str, misplaced: Messages, callback: Delivered | None) -> int:
        """As `_produce_refused`, for many."""
        if not misplaced:
            return 0
        self._watcher.expect_changes()
        forget_errors(misplaced)
        sent = super().produce_batch(topic, misplaced, -1, callback)
        self._count_uncommon(topic, -1, [message for message in misplaced if "_error" not in message])
        return sent

    def _count_uncommon(self, topic: str, partition: int, messages: Messages) -> None:
        partitioner = self._topics_in_use.partitioners.get(topic)
        for message in messages:
            if partitioner is None or partition < 0:
                self._topics_in_use.count_without_leaders(topic, size_of(message))
            else:
                partitioner.count_explicit(partition, size_of(message))

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

    def close(self) -> bool:
        """Stop watching the leaders and close, as the base class does."""
        self._watcher.close()
        return super().close()

    def __exit__(self, *exception: object) -> bool | None:
        self._watcher.close()
        return super().__exit__(*exception)


def _drain_of(owner: "weakref.ref[AZAwareProducer]", reports: DeliveryReports) -> Callable[[], bool]:
    def drain() -> bool:
        producer = owner() if reports.may_poll() else None
        if producer is not None:
            producer.poll(0)
        return producer is not None

    return drain


def zone_policy(  # noqa: PLR0913 - one setting each
    config: Mapping[str, Any],
    keys: str,
    fallback: Iterable[str],
    batch_bytes: int | None,
    *,
    hold_s: float,
    aware: bool,
    skew: SkewGuard | None,
    count: str,
) -> ZonePolicy:
    """Create the policy from a producer's configuration and arguments.

    Raises:
        PolicyError: a setting has a value that cannot work.
    """
    mode = key_mode(keys)
    if mode is KeyMode.GLOBAL:
        log_default(config)
    return ZonePolicy(
        rack=config.get("client.rack"),
        keys=mode,
        fallback=zone_order(fallback),
        batch_bytes=_batch_size(config) if batch_bytes is None else batch_bytes,
        hold_s=hold_s,
        aware=aware,
        skew=skew,
        counts_deliveries=counts_deliveries(count),
        partitioner=client_partitioner(config),
    )


def _batch_size(config: Mapping[str, Any]) -> int:
    try:
        return int(config.get("batch.size", _BATCH_BYTES))
    except (TypeError, ValueError):  # the client reports the error, with the name
        return _BATCH_BYTES
