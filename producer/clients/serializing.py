"""Producers that serialize keys and values: confluent-kafka's `SerializingProducer`, and an asyncio twin."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, Final

from confluent_kafka import SerializingProducer
from confluent_kafka.error import KeySerializationError, ValueSerializationError
from confluent_kafka.serialization import MessageField, SerializationContext

from producer.clients.confluent import AZAwareProducer
from producer.clients.confluent_aio import AZAwareAIOProducer

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
        given = [one for one in (config, conf) if one is not None]
        if len(given) != 1:
            raise TypeError(f"{type(self).__name__}() takes one configuration: config or conf")
        object.__setattr__(self, "_kafka_azimuth_options", options)
        super().__init__(dict(given[0]))


class AZAwareAIOSerializingProducer(AZAwareAIOProducer):
    """The asyncio twin of `AZAwareSerializingProducer`.

    Args:
        config: as for `AIOProducer`, with `key.serializer` and `value.serializer`: plain callables, or those of the
            schema registry's asyncio client, which are awaited. A `.builder` of one is refused, because it is awaited,
            too: build the serializer first.
        options: as for `AZAwareAIOProducer`.

    Raises:
        ValueError: the configuration has a `.builder`.

    Contract: records of one topic are sent in the order of the calls, although a serializer may await a schema.
    """

    def __init__(self, config: Mapping[str, Any], **options: Any) -> None:  # noqa: ANN401 - of `AZAwareAIOProducer`
        if built := [name for name in _SERIALIZERS if f"{name}.builder" in config]:
            raise ValueError(f"{built[0]}.builder: await its build first, and give the serializer as {built[0]}")
        super().__init__({name: value for name, value in config.items() if name not in _SERIALIZERS}, **options)
        calls = _SerializingCalls(*(config.get(name) for name in _SERIALIZERS))
        self._kafka_azimuth_serializing = self._kafka_azimuth.earlier = calls

    async def produce(  # type: ignore[override]  # noqa: PLR0913, PLR0917 -- the arguments of `SerializingProducer`
        self,
        topic: str,
        key: Any = None,  # noqa: ANN401 - what the serializer takes
        value: Any = None,  # noqa: ANN401 - as key
        partition: int = -1,
        timestamp: int = 0,
        headers: Any = None,  # noqa: ANN401 - as the base class types it
        **kwargs: Any,  # noqa: ANN401 - as the base class types it
    ) -> "asyncio.Future[Any]":
        """Serialize a record and send it, as `AZAwareAIOProducer.produce`.

        Raises:
            KeySerializationError, ValueSerializationError: a serializer failed; nothing is sent.
            RuntimeError: the producer is closed. This and the next are raised before a serializer is called.
            TypeError: the topic is not a str.
        """
        if self._is_closed:
            raise RuntimeError("Producer has been closed")
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        # The base class refuses some of these arguments whatever their value.
        kwargs |= {"partition": partition} if partition != -1 else {}
        kwargs |= {"timestamp": timestamp} if timestamp != 0 else {}
        kwargs |= {"headers": headers} if headers is not None else {}
        return await self._kafka_azimuth_serializing.produce(super().produce, topic, key, value, kwargs)


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
