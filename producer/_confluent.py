"""`AZAwareProducer`: confluent-kafka's producer that keeps records in their zone.

confluent-kafka has no custom partitioner, so the partition is chosen here and passed along. Everything else is the
producer's own: configuration, callbacks, transactions, errors.
"""

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, Message, Producer, murmur2

from producer._batches import Messages, are_valid, count, forget_errors, group, size_of
from producer._fork import refuse_after_fork
from producer._locality import Racks
from producer._policy import ZonePolicy, key_mode, zone_order
from producer._route import RECORD
from producer._router import Router
from producer._skew import SkewGuard
from producer._statistics import Statistics
from producer._traffic import Traffic
from producer._watcher import Watcher
from producer.topology import Topology

Delivered = Callable[[KafkaError | None, Message], None]
_produce = Producer.produce
_BATCH_BYTES = 65_536
_NOT_BYTES_OF_KEY = "the key must be str, bytes or None"


class AZAwareProducer(Producer):
    """A `confluent_kafka.Producer` whose records go to leaders in its own zone while there are any.

    Args:
        config: as for `confluent_kafka.Producer`; `client.rack` names the own zone as the brokers' `broker.rack` does.
        keys: `"global"` (Java's mapping over all partitions, order per key, no locality), `"local-mod"` or
            `"local-hrw"` (inside the own zone: one partition per key and zone).
        fallback: zones to try in this order when the own zone leads no partition of a topic.
        aware: False counts traffic only and spreads records over all partitions.
        skew: bound on how uneven locality may make the partitions.
        racks: rack per broker id where the cluster may not be asked for it.
        batch_bytes: bytes before records without a key move on to another partition; default `batch.size` where that is
            set, else 64 KiB.
        hold_s: how long a returned leader must stay before records come back to it, seconds.
        refresh_s: how often leaders are read when nothing happens, seconds.
        metadata_timeout_s: how long the first record of a topic may wait for its leaders, seconds.

    Raises:
        PolicyError: a setting has a value that cannot work.

    Contract:
    * Methods may be called from any thread, as with the base class; an explicit partition is never changed.
    * `produce` raises what the base class raises, and then counts nothing.
    * After a fork the copy in the new process refuses every call (`ForkError`).
    * The first record of a topic waits for the topic's leaders; when they cannot be had, librdkafka chooses the
      partition.
    """

    # Slots, as `produce` looks one of them up for each record: a dictionary costs it a twentieth of its time.
    __slots__ = ("__weakref__", "_router", "_routes", "_statistics", "_watcher")

    def __init__(  # noqa: PLR0913 - one setting each, keyword-only
        self,
        config: Mapping[str, Any],
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
    ) -> None:
        policy = zone_policy(config, keys, fallback, batch_bytes, hold_s=hold_s, aware=aware, skew=skew)
        self._router = Router(policy)
        self._routes = self._router.routes
        topology = Topology(config, racks, metadata_timeout_s)
        self._watcher = Watcher(weakref.ref(self), self._router, topology, refresh_s=refresh_s)
        self._statistics = Statistics(self._router, self._watcher, topology)
        super().__init__(self._statistics.listen(config))
        refuse_after_fork(self)

    def produce(  # noqa: PLR0913, PLR0917 - the base class's parameters, in its order
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        callback: Delivered | None = None,
        on_delivery: Delivered | None = None,
        timestamp: int = 0,
        headers: Any = None,  # noqa: ANN401 - as the base class types it
    ) -> None:
        """Send a record, as `confluent_kafka.Producer.produce`, to a leader of the own zone.

        Raises:
            BufferError: the queue is full; poll and call again.
            KafkaException: the client refused the record.
        """
        # Straight down and without a helper: a call costs a tenth of the whole budget of this function.
        try:
            route = self._routes[topic]
        except KeyError:
            self._produce_aside(topic, value, key, partition, callback or on_delivery, timestamp, headers)
            return
        if partition != -1:
            self._produce_aside(topic, value, key, partition, callback or on_delivery, timestamp, headers)
            return
        if type(value) is not bytes:
            value = value.encode() if isinstance(value, str) else value
        # One callback only: the base class does not see `on_delivery` behind a `callback` of None.
        if key is None:
            tally = route.sticky
            if callback is None and on_delivery is None and headers is None and timestamp == 0:
                _produce(self, topic, value, None, tally.partition)
            else:
                _produce(self, topic, value, None, tally.partition, callback or on_delivery, None, timestamp, headers)
            tally.records += 1
            tally.bytes += len(value) if value is not None else 0
            if tally.bytes >= tally.switch_at:
                self._router.advance(route, tally)
            return
        lane = route.lane
        try:
            chosen = lane.table[murmur2(key, lane.slots)]  # type: ignore[arg-type]  # text is told by murmur2
        except TypeError:  # asking first would cost every record
            key = _key_bytes(key)
            chosen = lane.table[murmur2(key, lane.slots)]
        # Arguments that say nothing are left out: reading them costs the base class what a look-up costs here.
        if callback is None and on_delivery is None and headers is None and timestamp == 0:
            _produce(self, topic, value, key, chosen)
        else:
            _produce(self, topic, value, key, chosen, callback or on_delivery, None, timestamp, headers)
        lane.sent[chosen] += len(key) + len(value) + RECORD if value is not None else len(key) + RECORD

    def _produce_aside(  # noqa: PLR0913, PLR0917 - the parameters of `produce`
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
            if topic in self._routes:
                self.produce(topic, value, key, partition, callback, None, timestamp, headers)
                return
        _produce(self, topic, value, key, partition, callback, None, timestamp, headers)
        self._count_aside(topic, partition, [{"value": value, "key": key}])

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
            How many were queued; the others hold their error in `_error`.

        Raises:
            TypeError, ValueError, NotImplementedError: a message is not one; none was sent.
            KafkaException: the client refused a whole partition's messages; earlier partitions were sent.
        """
        if topic not in self._routes:
            self._watcher.load(topic)
        route = self._routes.get(topic)
        if not are_valid(messages):
            return super().produce_batch(topic, messages, partition, callback or on_delivery)
        forget_errors(messages)
        if route is None or partition != -1:
            sent = super().produce_batch(topic, messages, partition, callback or on_delivery)
            queued = [message for message in messages if "_error" not in message]
            self._count_aside(topic, partition, queued)
            return sent
        sent = 0
        unsent: dict[int, Messages] = {}
        try:
            group(route, messages, self._router.advance, unsent)
            for chosen, batch in unsent.items():
                sent += super().produce_batch(topic, batch, chosen, callback or on_delivery)
                unsent[chosen] = [message for message in batch if "_error" in message]
        finally:
            for chosen, refused in unsent.items():
                for message in refused:
                    count(route, message, chosen, -1)
        return sent

    def _count_aside(self, topic: str, partition: int, messages: Messages) -> None:
        route = self._routes.get(topic)
        for message in messages:
            if route is None or partition < 0:
                self._router.count_unrouted(topic, size_of(message))
            else:
                tally = route.explicit_tally(partition)
                tally.records += 1
                tally.bytes += size_of(message)

    def traffic(self) -> Traffic:
        """Say where the records went so far; bytes are those of keys and values before compression."""
        return self._statistics.complete(self._router.traffic())

    def refresh_leaders(self) -> None:
        """Have the leaders read again soon; returns at once."""
        self._watcher.refresh_soon()

    def close(self) -> bool:
        """Stop watching the leaders and close, as the base class does."""
        self._watcher.close()
        return super().close()

    def __exit__(self, *exception: object) -> bool | None:
        self._watcher.close()
        return super().__exit__(*exception)


def zone_policy(  # noqa: PLR0913 - one setting each
    config: Mapping[str, Any],
    keys: str,
    fallback: Iterable[str],
    batch_bytes: int | None,
    *,
    hold_s: float,
    aware: bool,
    skew: SkewGuard | None,
) -> ZonePolicy:
    """Make the policy that a producer's configuration and arguments ask for.

    Raises:
        PolicyError: a setting has a value that cannot work.
    """
    return ZonePolicy(
        rack=config.get("client.rack"),
        keys=key_mode(keys),
        fallback=zone_order(fallback),
        batch_bytes=int(config.get("batch.size", _BATCH_BYTES)) if batch_bytes is None else batch_bytes,
        hold_s=hold_s,
        aware=aware,
        skew=skew,
    )


def _key_bytes(key: object) -> bytes:
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes):
        return bytes(key)
    raise TypeError(f"{_NOT_BYTES_OF_KEY}, not {type(key).__name__}")
