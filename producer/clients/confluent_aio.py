"""`AZAwareAIOProducer`: confluent-kafka's asyncio producer that keeps records in their zone."""

import asyncio
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from time import monotonic
from typing import Any, Final, Unpack

from confluent_kafka import Producer
from confluent_kafka.aio import AIOProducer

from assignors.clients import flat
from producer.clients.aio_buffer import BufferInTurn
from producer.clients.aio_producer_parts import AIOProducerParts, ChosenPartition, Turn
from producer.clients.configured_policy import REFRESH_S, topology_of, zone_policy
from producer.clients.delivery_reports import kind_of
from producer.clients.forked import refuse_after_fork
from producer.clients.leader_watcher import LeaderWatcher
from producer.clients.produce_batch import Messages, forget_errors, is_unplaced, size_of, without_gaps
from producer.clients.producer_options import ProducerOptions, need_mapping, split_options, with_placed
from producer.metadata_requests import Lister
from producer.partitioning.produce_interpreted import Deliveries
from producer.partitioning.topics_in_use import TopicsInUse
from producer.traffic_cost import Count, Traffic

try:
    from producer.partitioning import produce_compiled as hot
except ImportError:  # built without a C compiler
    from producer.partitioning import produce_interpreted as hot  # type: ignore[no-redef]


class AIOProducerOptions(ProducerOptions, total=False):
    """Keyword arguments of `AZAwareAIOProducer`: those of `AZAwareProducer`, and those of the base class."""

    producer_conf: Mapping[str, Any]
    max_workers: int
    executor: Executor | None
    batch_size: int
    buffer_timeout: float


_PLACED: Final = ("producer_conf", "max_workers", "executor", "batch_size", "buffer_timeout")
"""The positional parameters of the base class."""

_Queued = Callable[[str, Messages, int], None]
"""Gets messages that the client was asked to queue: topic, messages and partition."""


class _PlacedAgain:
    """The base class's client. Records for partitions that a topic no longer has go where librdkafka chooses.

    A topic was recreated with fewer partitions, and its leaders are not read yet: a bare producer has no error then.
    Records whose partition the application chose are sent apart from the others, because they count apart.
    """

    def __init__(self, client: Producer, watcher: LeaderWatcher, deliveries: Deliveries, queued: _Queued) -> None:
        self._client = client
        self._watcher = watcher
        self._deliveries = deliveries
        self._queued = queued

    def produce_batch(self, topic: str, messages: Messages, partition: int = -1) -> int:
        """Send messages of one partition, as the client."""
        sent = 0
        placed = messages
        for chosen, run in without_gaps(
            groupby(messages, lambda one: partition == -1 or isinstance(one["partition"], ChosenPartition))
        ):
            if chosen:
                sent += self._client.produce_batch(topic, run, partition)
            else:
                sent += self._deliveries.explicitly(self._client.produce_batch, topic, run, partition)
        misplaced = [one for one in messages if isinstance(one.get("partition"), ChosenPartition) and is_unplaced(one)]
        if misplaced:
            self._watcher.expect_changes()
            placed = [one for one in messages if not is_unplaced(one)]
            forget_errors(misplaced)
            sent += self._client.produce_batch(topic, misplaced, partition=-1)
            self._queued(topic, misplaced, -1)
        self._queued(topic, placed, partition)
        return sent


class AZAwareAIOProducer(AIOProducer):
    """A `confluent_kafka.aio.AIOProducer` whose records go to leaders in its own zone while the zone has leaders.

    `config` is as for `AIOProducer` and is not changed; `client.rack` in it names the producer's zone. It may also be
    given as `producer_conf`, the base class's name. `max_workers`, `executor`, `batch_size` and `buffer_timeout` are
    those of the base class, by place or by name; all others have the meaning of those of `AZAwareProducer`.

    Raises:
        PolicyError: a setting has a value that cannot work.

    Contract: create and use it inside one running event loop, as the base class.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *placed: Any,  # noqa: ANN401 - the base class's parameters, in its order
        **more: Unpack[AIOProducerOptions],
    ) -> None:
        named = with_placed(_PLACED, placed if config is None else (config, *placed), more)
        if "producer_conf" not in named:
            raise TypeError("the configuration is missing")
        settings = flat(need_mapping(named.pop("producer_conf")))
        options, others = split_options(named)
        policy = zone_policy(settings, options)
        deliveries = hot.Deliveries(policy.partitioner.empty_is_null)
        counts_inside = deliveries.is_possible and options.get("count") != "queued"
        own = weakref.ref(self)
        self._kafka_azimuth = parts = AIOProducerParts(
            policy,
            counts_inside=counts_inside,
            topology=topology_of(settings, options),
            client=_client_of(own),
            refresh_s=options.get("refresh_s", REFRESH_S),
            drain=_drain_of(own, asyncio.get_running_loop()),
        )
        final = parts.statistics.with_callbacks(settings, coroutines=True)
        if counts_inside:
            parts.topics_in_use.count_by(deliveries)
            final["plugin.library.paths"] = deliveries.plugins(final.get("plugin.library.paths"))
            deliveries.making(super().__init__, final, **others)
        else:
            super().__init__(final, **others)
        queued = _counting(parts.topics_in_use) if parts.counts_queued else _ignore
        placing = _PlacedAgain(self._producer, parts.watcher, deliveries, queued)
        parts.buffer = BufferInTurn(
            self._batch_processor,
            self._producer,
            self.executor,
            send=placing.produce_batch,
            refuse=self._kafka_executor._handle_partial_failures,  # noqa: SLF001 - the base class's way to end futures
        )
        self._batch_processor.flush_buffer = parts.buffer.flush  # type: ignore[method-assign]  # all flushes call it
        parts.watcher.start_for_reports()
        refuse_after_fork(self)

    async def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        *args: Any,  # noqa: ANN401 - as the base class types it
        **kwargs: Any,  # noqa: ANN401 - as the base class types it
    ) -> "asyncio.Future[Any]":
        """Send a record, as `AIOProducer.produce`, to a leader of the producer's zone.

        The first call for a topic awaits the topic's leaders. Calls during that time wait, too, and send in call order.

        Raises:
            TypeError: key or value is neither text nor bytes, or the partition is not a number. The base class (2.16.1)
                would keep such a record in its buffer, and every later flush would fail because of it.
            NotImplementedError: a timestamp or headers, which the base class does not send.
        """
        if kwargs.get("partition", -1) is None:
            kwargs["partition"] = -1
        _check(value, key, kwargs.get("partition", -1), kwargs.get("timestamp"))
        if "headers" in kwargs:
            return await super().produce(
                topic, value, key, *args, **kwargs
            )  # it refuses them, so there is nothing to count
        parts = self._kafka_azimuth
        produce_now = partial(parts.produce_now, super().produce, topic, value, key)
        turn = parts.waiting.get(topic)
        if turn is None:
            if kwargs.get("partition", -1) != -1 or not parts.watcher.must_load(topic):
                return await produce_now(*args, **kwargs)
            turn = parts.waiting[topic] = Turn()
        turn.calls += 1
        try:
            async with turn.lock:  # in call order, also for a call after the reading
                if parts.watcher.must_load(topic):
                    await asyncio.to_thread(parts.watcher.load, topic)
                return await produce_now(*args, **kwargs)
        finally:
            turn.calls -= 1
            if not turn.calls:
                parts.waiting.pop(topic, None)

    def traffic(self) -> Traffic:
        """Return the traffic so far, of queued or delivered records as set by `count`; bytes before compression."""
        parts = self._kafka_azimuth
        return replace(parts.statistics.complete(parts.topics_in_use.traffic()), delivered=not parts.counts_queued)

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use other credentials, as the base class does, also for reading racks."""
        await super().set_sasl_credentials(username, password)
        self._kafka_azimuth.topology.set_sasl_credentials(username, password)

    def __len__(self) -> int:
        return super().__len__() + (0 if self._is_closed else self._kafka_azimuth.waiting_calls())

    async def flush(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the base class types it
        """Send all records and wait for them, as the base class does; also those that wait for a topic's leaders."""
        given = args[0] if args else kwargs.pop("timeout", None)
        if not isinstance(given, int | float) or given < 0:
            await self._kafka_azimuth.hand_over()
            await self._kafka_azimuth.buffer.flush_all()
            return await super().flush(*(args or (() if given is None else (given,))), **kwargs)
        until = monotonic() + given
        with suppress(TimeoutError):
            async with asyncio.timeout(given):
                await self._kafka_azimuth.hand_over()
        await self._kafka_azimuth.buffer.flush_all()  # not for long: the client only queues
        left = await super().flush(max(0.0, until - monotonic()), *args[1:], **kwargs)
        return left + self._kafka_azimuth.waiting_calls()

    async def purge(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the base class types it
        """Remove records from the queues, as the base class does; also those that wait for a topic's leaders."""
        await self._kafka_azimuth.hand_over()
        self._batch_processor.cancel_pending_futures()  # at once: a flush of another task could take them
        self._batch_processor.clear_buffer()
        await self._kafka_azimuth.buffer.wait()
        return await super().purge(*args, **kwargs)

    async def close(self) -> None:
        """Stop watching the leaders and close, as the base class does."""
        await self._kafka_azimuth.hand_over()
        await asyncio.to_thread(self._kafka_azimuth.watcher.close)
        await super().close()


def _counting(topics_in_use: TopicsInUse) -> _Queued:
    def count_queued(topic: str, messages: Messages, partition: int) -> None:
        """Count the messages that the client has queued; a full queue refuses some."""
        for message in messages:
            if "_error" not in message:
                explicit = partition != -1 and not isinstance(message["partition"], ChosenPartition)
                kind = kind_of(message.get("key"), topics_in_use.policy, explicit=explicit)
                topics_in_use.count_delivered(topic, partition, kind, Count(1, size_of(message)))

    return count_queued


def _ignore(topic: str, messages: Messages, partition: int) -> None:
    """Leave the count to the client or to the futures."""


def _check(value: object, key: object, partition: object, timestamp: object) -> None:
    for name, data in (("value", value), ("key", key)):
        if not isinstance(data, str | bytes | None):
            raise TypeError(f"the {name} must be str, bytes or None, not {type(data).__name__}")
    if not isinstance(partition, int):
        raise TypeError(f"the partition must be int or None, not {type(partition).__name__}")
    if timestamp is not None:
        raise NotImplementedError("AIOProducer sends no timestamps: leave timestamp out")


def _drain_of(owner: "weakref.ref[AZAwareAIOProducer]", loop: asyncio.AbstractEventLoop) -> Callable[[], bool]:
    def drain() -> bool:
        """Poll in the base class's executor, as the base class does while it sends records."""
        producer = owner()
        if producer is None or not loop.is_running():  # its callbacks are coroutines of this loop
            return False
        asyncio.run_coroutine_threadsafe(AIOProducer.poll(producer, 0), loop)  # not a subclass's
        return True

    return drain


def _client_of(owner: "weakref.ref[AZAwareAIOProducer]") -> Callable[[], Lister | None]:
    def client() -> Lister | None:
        return getattr(owner(), "_producer", None)

    return client
