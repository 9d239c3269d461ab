"""The serializing producers on librdkafka's mock cluster, beside confluent-kafka's own."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException, SerializingProducer
from confluent_kafka.aio import AsyncSerializingProducer
from confluent_kafka.error import KeySerializationError, ValueSerializationError
from confluent_kafka.schema_registry import AsyncSchemaRegistryClient, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AsyncAvroSerializer, AvroSerializer
from confluent_kafka.serialization import IntegerSerializer, MessageField, SerializationContext, StringSerializer

from producer import AZAwareAIOSerializingProducer, AZAwareSerializingProducer
from producer.testing import MockCluster
from producer.traffic_cost import Traffic
from tests.unit.producer.deliveries import TOPIC, config

SERIALIZERS: dict[str, Any] = {"key.serializer": StringSerializer(), "value.serializer": IntegerSerializer()}


def test_objects_are_serialized_and_stay_local(mock: MockCluster) -> None:
    """The bytes of the base class's producer, in the zone; the key that is sent decides the partition."""
    mock.create(TOPIC, [1, 2, 3] * 2)
    got: dict[str, set[tuple[bytes | None, bytes | None]]] = {"ours": set(), "bare": set()}
    places: set[int | None] = set()
    ours = AZAwareSerializingProducer({**config(mock), **SERIALIZERS}, keys="local-hrw", racks=mock.racks)
    bare = SerializingProducer({**config(mock), **SERIALIZERS})
    for name, producer in (("ours", ours), ("bare", bare)):
        for number in range(30):

            def delivered(_error: object, message: Any, name: str = name) -> None:
                got[name].add((message.key(), message.value()))
                if name == "ours":
                    places.add(message.partition())

            producer.produce(TOPIC, f"key-{number}", number, on_delivery=delivered)
        assert producer.flush(60) == 0
    assert got["ours"] == got["bare"]
    assert len(got["ours"]) == 30
    assert places == {0, 3}
    assert ours.traffic().local.records == 30
    ours.close()
    with pytest.raises(RuntimeError, match="closed"):
        ours.produce(TOPIC, "k", 1)
    bare.close()


@pytest.mark.parametrize(
    ("key", "value", "failure"), [(5, 1, KeySerializationError), ("k", "no number", ValueSerializationError)]
)
def test_a_record_that_cannot_be_serialized_is_not_sent(
    mock: MockCluster,
    key: Any,
    value: Any,
    failure: type[Exception],
) -> None:
    """With the errors of the base class, from both clients."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareSerializingProducer({**config(mock), **SERIALIZERS})
    with pytest.raises(failure):
        producer.produce(TOPIC, key, value)
    assert len(producer) == 0
    assert producer.traffic().topics == {}
    producer.close()

    async def run() -> None:
        async with AZAwareAIOSerializingProducer({**config(mock), **SERIALIZERS}) as aio:
            with pytest.raises(failure):
                await aio.produce(TOPIC, key, value)
            assert aio.traffic().topics == {}

    asyncio.run(run())


@pytest.mark.parametrize("twin", [False, True], ids=["threads", "asyncio"])
def test_the_registrys_own_serializers_are_taken(mock: MockCluster, *, twin: bool) -> None:
    """Avro with the schema's id, and keys that decide the partition; the registry is confluent-kafka's own mock."""
    mock.create(TOPIC, [1, 2, 3])
    schema = '{"type": "record", "name": "Flight", "fields": [{"name": "number", "type": "int"}]}'
    registry = {"url": "mock://"}
    got: list[tuple[int | None, bytes | None]] = []

    async def run() -> Traffic:
        serializer = await AsyncAvroSerializer(AsyncSchemaRegistryClient.new_client(registry), schema)
        settings = {**config(mock), "key.serializer": StringSerializer(), "value.serializer": serializer}
        async with AZAwareAIOSerializingProducer(settings, keys="local-hrw") as producer:
            futures = [await producer.produce(TOPIC, f"key-{n}", {"number": n}) for n in range(10)]
            await producer.flush()
            got.extend((one.partition(), one.value()) for one in await asyncio.gather(*futures))
            return producer.traffic()

    def send() -> Traffic:
        serializer = AvroSerializer(SchemaRegistryClient.new_client(registry), schema)
        settings = {**config(mock), "key.serializer": StringSerializer(), "value.serializer": serializer}
        producer = AZAwareSerializingProducer(settings, keys="local-hrw")
        for n in range(10):
            producer.produce(
                TOPIC, f"key-{n}", {"number": n}, on_delivery=lambda _, one: got.append((one.partition(), one.value()))
            )
        assert producer.flush(10) == 0
        producer.close()
        return producer.traffic()

    assert (asyncio.run(run()) if twin else send()).local.records == 10
    plain = b"\0" + (1).to_bytes(4, "big")  # the registry's first schema; an int of Avro is its double
    assert len(got) == 10
    assert set(got) == {(0, plain + bytes([2 * n])) for n in range(10)}


def test_a_serializer_that_awaits_its_schema_keeps_the_order_of_a_key(mock: MockCluster) -> None:
    """The first call awaits the registry, and later calls, which need not, would overtake it."""
    mock.create(TOPIC, [1, 2, 3])
    asked: list[str] = []

    async def serialize(data: object, context: SerializationContext) -> bytes:
        asked.append(context.field)
        for _ in range(5 if len(asked) < 3 else 0):
            await asyncio.sleep(0)
        return json.dumps(data).encode()

    async def run() -> list[bytes]:
        settings = {**config(mock), "value.serializer": serialize}
        async with AZAwareAIOSerializingProducer(settings, keys="local-hrw") as producer:
            calls = [producer.produce(TOPIC, "one key", number, partition=0) for number in range(20)]
            futures = await asyncio.gather(*calls)
            await producer.flush()
            messages = await asyncio.gather(*futures)
            return [one.value() for one in sorted(messages, key=lambda one: one.offset())]

    assert asyncio.run(run()) == [b"%d" % number for number in range(20)]
    assert set(asked) == {MessageField.VALUE}


def test_the_asyncio_twin_takes_the_arguments_of_the_clients_own_class(mock: MockCluster) -> None:
    """A partition by position, and defaults by name; the `AIOProducer` below refuses headers and times of any value."""
    mock.create(TOPIC, [1, 2, 3])

    async def run() -> list[int | None]:
        producer = AZAwareAIOSerializingProducer(config(mock), buffer_timeout=0)
        futures = [
            await producer.produce(TOPIC, "k", "v", 1),
            await producer.produce(TOPIC, "k", "v", partition=2, headers=None, timestamp=0),
        ]
        await producer.flush()
        messages = await asyncio.gather(*futures)
        await producer.close()
        return [one.partition() for one in messages]

    assert asyncio.run(run()) == [1, 2]


def test_the_asyncio_twin_refuses_before_a_serializer_is_called(mock: MockCluster) -> None:
    """A serializer may register a schema; and a record of a topic that is not a text made every later flush fail."""
    called: list[object] = []

    def serialize(value: object, _context: object) -> bytes:
        called.append(value)
        return b""

    async def run() -> None:
        producer = AZAwareAIOSerializingProducer({**config(mock), "value.serializer": serialize})
        with pytest.raises(TypeError, match="topic must be a str, not int"):
            await producer.produce(5, "k", "v")  # type: ignore[arg-type]  # on purpose
        await producer.flush()
        await producer.close()
        with pytest.raises(RuntimeError, match="Producer has been closed"):
            await producer.produce(TOPIC, "k", "v")

    asyncio.run(run())
    assert called == []


@pytest.mark.parametrize("given", [{"on_delivery": print}, {"callback": print}, {"partiton": 1}], ids=str)
def test_the_asyncio_twin_refuses_other_arguments_as_confluents_own_class(
    mock: MockCluster, given: dict[str, Any]
) -> None:
    """A callback was never called, and a misspelt argument had no effect, because the plain client ignores both."""

    async def run() -> int:
        async with AZAwareAIOSerializingProducer(config(mock)) as producer:
            with pytest.raises(TypeError, match=rf"unexpected keyword argument '{next(iter(given))}'"):
                await producer.produce(TOPIC, b"k", b"v", **given)
            return len(producer)

    assert asyncio.run(run()) == 0


class Builder:
    """Builds a serializer from a property of the configuration, which the client does not know."""

    def __init__(self, events: list[str], leftover: object = None, *, awaited: bool = True) -> None:
        self.events, self.leftover, self.awaited = events, leftover, awaited

    def build(self, conf: dict[str, Any], is_key: bool) -> Any:  # noqa: FBT001 - as the client's own builders
        """Take the prefix out of the configuration."""
        prefix = conf.pop("own.prefix")
        self.events.append(f"build key={is_key}")
        built = BuiltSerializer(prefix, self.events), conf if self.leftover is None else self.leftover

        async def later() -> Any:
            await asyncio.sleep(0)
            return built

        return later() if self.awaited else built


class BuiltSerializer:
    """Adds the prefix."""

    def __init__(self, prefix: str, events: list[str]) -> None:
        self.prefix, self.events = prefix, events
        self.cluster_id: Any = None

    async def __call__(self, data: object, _context: SerializationContext) -> bytes:
        """Serialize, with a question to the cluster."""
        await self.cluster_id()
        return f"{self.prefix}{data}".encode()

    def set_async_cluster_id_resolver(self, resolver: object) -> None:
        """Keep the function."""
        self.events.append("resolver")
        self.cluster_id = resolver

    async def aclose(self) -> None:
        """Note it."""
        self.events.append("closed")


Kind = Callable[..., Any]
KINDS = pytest.mark.parametrize("kind", [AsyncSerializingProducer, AZAwareAIOSerializingProducer])


@KINDS
@pytest.mark.parametrize("awaited", [True, False])
def test_construction_is_awaited_where_builders_make_the_serializers(
    mock: MockCluster, kind: Kind, *, awaited: bool
) -> None:
    """As confluent-kafka's own class: the client does not get a builder's property, and close() is theirs, too."""
    mock.create(TOPIC, [1, 2, 3])
    events: list[str] = []

    async def run() -> tuple[bytes, bytes]:
        builder = Builder(events, awaited=awaited)
        settings = {**config(mock), "own.prefix": "p-", "value.serializer.builder": builder}
        producer = await kind(conf={**settings, "key.serializer.builder": builder}, batch_size=10)
        future = await producer.produce(TOPIC, key=1, value=2)
        await producer.flush()
        message = await future
        events.append("sent")
        await producer.close()
        await producer.close()
        return message.key(), message.value()

    assert asyncio.run(run()) == (b"p-1", b"p-2")
    assert events == ["build key=True", "build key=False", "resolver", "resolver", "sent", "closed", "closed"]


@KINDS
def test_an_awaited_construction_without_builders_leaves_serializers_open(mock: MockCluster, kind: Kind) -> None:
    """They are the application's."""
    mock.create(TOPIC, [1, 2, 3])
    events: list[str] = []

    async def run() -> bytes:
        serializer = BuiltSerializer("p-", events)
        async with await kind({**config(mock), "value.serializer": serializer}) as producer:
            future = await producer.produce(TOPIC, key="k", value=2)
            await producer.flush()
            return bytes((await future).value())

    assert asyncio.run(run()) == b"p-2"
    assert events == ["resolver"]


@KINDS
@pytest.mark.parametrize(
    ("wrong", "message", "closed"),
    [
        ({"value.serializer": str}, "Cannot configure both value.serializer and value.serializer.builder", []),
        ({"key.serializer.builder": Builder([], leftover=5)}, "leftover configuration", []),
        ({"acks": "no"}, "acks", ["build key=False", "closed"]),
    ],
)
def test_a_construction_that_fails_closes_what_it_built(
    mock: MockCluster, kind: Kind, wrong: dict[str, object], message: str, closed: list[str]
) -> None:
    """With the errors of confluent-kafka's own class."""
    events: list[str] = []

    async def run() -> None:
        settings = {**config(mock), "own.prefix": "p-", "value.serializer.builder": Builder(events)}
        await kind({**settings, **wrong})

    with pytest.raises((ValueError, KafkaException), match=message):
        asyncio.run(run())
    assert events == closed


def test_a_producer_that_is_not_awaited_says_so(mock: MockCluster) -> None:
    """The serializers are not built; with `async with` they are."""
    mock.create(TOPIC, [1, 2, 3])
    events: list[str] = []

    async def run() -> None:
        settings = {**config(mock), "own.prefix": "p-", "value.serializer.builder": Builder(events)}
        producer = AZAwareAIOSerializingProducer(settings)
        with pytest.raises(RuntimeError, match="await AZAwareAIOSerializingProducer"):
            await producer.produce(TOPIC, "k", 1)
        await producer.close()
        async with AZAwareAIOSerializingProducer(settings) as built:
            assert await built is built

    asyncio.run(run())
    assert events == ["build key=False", "resolver", "closed"]


def test_calls_of_close_at_the_same_time_end_alike(mock: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later one waits for the first, and does not go on with a client that is closed meanwhile."""
    mock.create(TOPIC, [1])

    async def run() -> list[object]:
        aware = AZAwareAIOSerializingProducer(config(mock))
        watcher, calls = aware._kafka_azimuth.watcher, list[int]()
        close = watcher.close

        def late() -> None:
            calls.append(1)
            close()
            while len(calls) > 1 and not aware.executor._shutdown:  # type: ignore[attr-defined]  # of a ThreadPoolExecutor
                time.sleep(0.01)

        monkeypatch.setattr(watcher, "close", late)
        return await asyncio.gather(*(aware.close() for _ in range(2)), return_exceptions=True)

    assert asyncio.run(run()) == [None, None]
