"""Producers that serialize keys and values: confluent-kafka's `SerializingProducer`, and an asyncio twin."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import suppress
from inspect import isawaitable
from typing import Any, Final, Self

from confluent_kafka import SerializingProducer
from confluent_kafka._serde_builder import (
    AsyncSharedClusterIdResolver,
    async_build_serdes,
    async_close_serdes,
    pop_serde_props,
    propagate_async_cluster_id_resolver,
)
from confluent_kafka.error import KeySerializationError, ValueSerializationError
from confluent_kafka.serialization import MessageField, SerializationContext

from producer.clients.confluent import AZAwareProducer
from producer.clients.confluent_aio import AZAwareAIOProducer
from producer.clients.producer_options import need_mapping

Serializer = Callable[[Any, SerializationContext], bytes | Awaitable[bytes | None] | None]
"""Converts an object into the bytes that are sent; those of the schema registry's asyncio client are awaited."""

_SERIALIZERS: Final = ("key.serializer", "value.serializer")


class _WithOptions(AZAwareProducer):
    """`AZAwareProducer` behind the constructor of `SerializingProducer`, which passes on only the configuration."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        options: dict[str, Any] = self.__dict__.pop("_kafka_azimuth_options")
        super().__init__(config, **options)


class AZAwareSerializingProducer(SerializingProducer[Any, Any], _WithOptions):  # type: ignore[misc]  # the order of key and value
    """A `confluent_kafka.SerializingProducer` whose records go to leaders in its own zone while the zone has leaders.

    ```python
    producer = AZAwareSerializingProducer(
        {"bootstrap.servers": servers, "client.rack": "az-a", "value.serializer": AvroSerializer(registry, schema)},
        keys="local-hrw",
    )
    producer.produce("flights", key="N14228", value=flight)
    ```

    Args:
        config: as for `SerializingProducer`: `key.serializer` and `value.serializer`, callables of the object and a
            `SerializationContext`; the other properties are those of the client.
        conf: the same under the base class's name, in place of `config`.
        options: the settings of `AZAwareProducer`, such as `keys` and `fallback`.

    Contract: the serialized key decides the partition. `produce` takes the key before the value, as in the base class.
    If a serializer fails, it raises `KeySerializationError` or `ValueSerializationError`, and neither sends nor counts
    the record. `produce_batch` does not serialize, as in the base class.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        conf: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - those of `AZAwareProducer`
    ) -> None:
        settings = _one_of(config, conf, type(self).__name__)
        object.__setattr__(self, "_kafka_azimuth_options", options)
        super().__init__(settings)


class AZAwareAIOSerializingProducer(AZAwareAIOProducer):
    """The asyncio twin of `AZAwareSerializingProducer`, as `confluent_kafka.aio.AsyncSerializingProducer`.

    ```python
    producer = await AZAwareAIOSerializingProducer(
        {"bootstrap.servers": servers, "client.rack": "az-a", "value.serializer.builder": builder}
    )
    ```

    Args:
        config: as for `AIOProducer`, with `key.serializer` and `value.serializer`: plain callables, or those of the
            schema registry's asyncio client, which are awaited. Or their builders, as `value.serializer.builder`.
        conf: the same under the name of confluent-kafka's class, in place of `config`.
        options: as for `AZAwareAIOProducer`.

    Raises:
        ValueError: a serializer comes with its builder, or a builder has no serializer.

    Contract:
    * With a builder, construction is awaited: `await` or `async with` builds the serializers, and `close` closes those.
      Without one, `await` has no effect.
    * Records of one topic are sent in the order of the calls, although a serializer may await a schema.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        conf: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - of `AZAwareAIOProducer`
    ) -> None:
        settings = _one_of(config, conf, type(self).__name__)
        specs, rest = pop_serde_props(settings, *_SERIALIZERS)
        self._kafka_azimuth_built: list[Any] = []
        self._kafka_azimuth_closing = asyncio.Lock()
        self._kafka_azimuth_unbuilt = (specs, rest, options) if any(one.builder is not None for one in specs) else None
        if self._kafka_azimuth_unbuilt is None:
            self._kafka_azimuth_begin(rest, [one.serde for one in specs], options)

    def _kafka_azimuth_begin(
        self, config: Mapping[str, Any], serializers: list[Serializer | None], options: dict[str, Any]
    ) -> None:
        super().__init__(config, **options)
        calls = _SerializingCalls(*serializers)
        self._kafka_azimuth_serializing = self._kafka_azimuth.earlier = calls
        propagate_async_cluster_id_resolver(AsyncSharedClusterIdResolver(self.cluster_id), serializers)

    async def _kafka_azimuth_build(self) -> Self:
        if self._kafka_azimuth_unbuilt is None:
            return self
        specs, rest, options = self._kafka_azimuth_unbuilt
        serializers, built, rest = await async_build_serdes(specs, rest)
        try:
            self._kafka_azimuth_begin(rest, serializers, options)
        except BaseException:
            with suppress(Exception):
                await async_close_serdes(built)
            raise
        self._kafka_azimuth_unbuilt, self._kafka_azimuth_built = None, built
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self._kafka_azimuth_build().__await__()

    async def __aenter__(self) -> Self:
        return await self

    async def close(self) -> None:
        """Close as `AZAwareAIOProducer.close`, then the serializers of builders; a second call has no effect."""
        if self._kafka_azimuth_unbuilt is not None:
            return
        async with self._kafka_azimuth_closing:  # a call at the same time returns when the producer is closed
            if not self._is_closed:
                await super().close()
            built, self._kafka_azimuth_built = self._kafka_azimuth_built, []
            await async_close_serdes(built)

    async def produce(  # type: ignore[override]  # noqa: PLR0913, PLR0917 -- the arguments of `SerializingProducer`
        self,
        topic: str,
        key: Any = None,  # noqa: ANN401 - what the serializer takes
        value: Any = None,  # noqa: ANN401 - as key
        partition: int = -1,
        timestamp: int = 0,
        headers: Any = None,  # noqa: ANN401 - as the base class types it
    ) -> "asyncio.Future[Any]":
        """Serialize a record and send it, as `AZAwareAIOProducer.produce`.

        Raises:
            KeySerializationError, ValueSerializationError: a serializer failed; nothing is sent.
            RuntimeError: the producer is closed. This and the next are raised before a serializer is called.
            TypeError: the topic is not a str, or there is another argument, as `on_delivery`: await the future instead.
        """
        if self._kafka_azimuth_unbuilt is not None:
            raise RuntimeError(f"its serializers are not built yet: await {type(self).__name__}(...)")
        if self._is_closed:
            raise RuntimeError("Producer has been closed")
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        # The base class refuses some of these arguments whatever their value.
        more = {"partition": partition} if partition != -1 else {}
        more |= {"timestamp": timestamp} if timestamp != 0 else {}
        more |= {"headers": headers} if headers is not None else {}
        return await self._kafka_azimuth_serializing.produce(super().produce, topic, key, value, more)


class _SerializingCalls:
    """The calls of `produce` of one producer, which serialize and send the records of a topic in call order.

    Args:
        key_serializer: None for keys that are sent as they are.
        value_serializer: None for values that are sent as they are.
    """

    def __init__(self, key_serializer: Serializer | None, value_serializer: Serializer | None) -> None:
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._order: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._calls = 0

    @property
    def calls(self) -> int:
        """The number of calls whose records the base class does not have yet."""
        return self._calls

    async def produce(
        self,
        send: Callable[..., Awaitable["asyncio.Future[Any]"]],
        topic: str,
        key: Any,  # noqa: ANN401 - what the serializer takes
        value: Any,  # noqa: ANN401 - as key
        more: dict[str, Any],
    ) -> "asyncio.Future[Any]":
        """Serialize a record, and send it by the base class's `produce`."""
        self._calls += 1
        try:
            return await self._produce_in_order(send, topic, key, value, more)
        finally:
            self._calls -= 1

    async def _produce_in_order(
        self,
        send: Callable[..., Awaitable["asyncio.Future[Any]"]],
        topic: str,
        key: Any,  # noqa: ANN401 - what the serializer takes
        value: Any,  # noqa: ANN401 - as key
        more: dict[str, Any],
    ) -> "asyncio.Future[Any]":
        async with self._order[topic]:
            context = SerializationContext(topic, MessageField.KEY, more.get("headers"))
            key = await _serialized(self._key_serializer, key, context, KeySerializationError)
            context.field = MessageField.VALUE
            value = await _serialized(self._value_serializer, value, context, ValueSerializationError)
            return await send(topic, value, key, **more)

    async def hand_over(self) -> None:
        """Wait until the base class has the records of all calls so far."""
        for lock in list(self._order.values()):
            async with lock:  # as in the base class; each call keeps it until its record is handed over
                pass


def _one_of(config: Mapping[str, Any] | None, conf: Mapping[str, Any] | None, kind: str) -> dict[str, Any]:
    given = [one for one in (config, conf) if one is not None]
    if len(given) != 1:
        raise TypeError(f"{kind}() takes one configuration: config or conf")
    return dict(need_mapping(given[0]))


async def _serialized(
    serializer: Serializer | None,
    data: Any,  # noqa: ANN401 - what the serializer takes
    context: SerializationContext,
    failure: type[KeySerializationError | ValueSerializationError],
) -> Any:  # noqa: ANN401 - bytes, or what was given where there is no serializer
    if serializer is None:
        return data
    try:
        found = serializer(data, context)
        return await found if isawaitable(found) else found
    except Exception as error:
        raise failure(error) from error
