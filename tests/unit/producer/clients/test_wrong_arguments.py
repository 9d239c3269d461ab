"""A wrong argument of the producer names the right one; those of the bare classes are taken."""

import asyncio
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaException, Producer

from producer import (
    AZAwareAIOProducer,
    AZAwareAIOSerializingProducer,
    AZAwareProducer,
    AZAwareSerializingProducer,
    PolicyError,
    SkewGuard,
)
from producer.testing import MockCluster
from producer.traffic_cost import Traffic
from tests.unit.producer.deliveries import TOPIC, config

LEAST = {"bootstrap.servers": "localhost:1", "client.rack": "az-a"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": "global"}, "did you mean keys?"),
        ({"fall_back": ["az-b"]}, "did you mean fallback?"),
        ({"rack": "az-a"}, "did you mean 'client.rack' of the configuration?"),
        ({"client_rack": "az-a"}, "did you mean 'client.rack' of the configuration?"),
        ({"keys": "local-hrw", "choose": "random"}, "choose replaces keys, give one of them"),
        ({"aware": "false"}, "aware='false', need True or False, not str"),
        ({"adaptive": None}, "adaptive=None, need True or False, not NoneType"),
        ({"keys": {"logs": "lokal"}}, "pattern 'logs': keys='lokal' is not a key mode"),
    ],
)
def test_a_wrong_argument_names_the_right_one(given: dict[str, Any], said: str) -> None:
    """The client reports an unknown property, which hides that an argument was meant."""
    with pytest.raises(PolicyError) as refused:
        AZAwareProducer(LEAST, **given)
    assert said in str(refused.value)


def test_a_property_that_looks_like_an_argument_stays_a_property() -> None:
    """`acks` is one letter from `racks`, and the bare client takes it by keyword."""
    properties: dict[str, Any] = {"acks": "all", "retries": 3, "partitioner": "murmur2_random"}
    AZAwareProducer(LEAST, **properties).close()


@pytest.mark.parametrize("given", [((), {}), ((5,), {}), ((), {"timeout": 1})], ids=["none", "by place", "by name"])
def test_close_takes_the_arguments_that_the_bare_client_ignores(given: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    """Programs pass a timeout, as to `flush`."""
    placed, named = given
    assert Producer(LEAST).close(*placed, **named)
    assert AZAwareProducer(LEAST).close(*placed, **named)


@pytest.mark.parametrize("given", [{}, {"keys": "ignore"}], ids=str)
def test_a_missing_configuration_is_a_type_error_as_for_the_bare_class(given: dict[str, Any]) -> None:
    """The producer was made, and kept its records without a broker to send them to."""
    with pytest.raises(TypeError):
        Producer()
    with pytest.raises(TypeError, match="the configuration is missing"):
        AZAwareProducer(**given)


@pytest.mark.parametrize("wrong", [[], (), 0, 5, "text"], ids=repr)
def test_a_configuration_that_is_no_mapping_is_a_type_error_as_for_the_bare_classes(wrong: Any) -> None:
    """An empty list made a producer without brokers, and the asyncio producer named an attribute."""

    async def make_aio(kind: type[AZAwareAIOProducer]) -> None:
        kind(wrong)

    for kind in (Producer, AZAwareProducer, AZAwareSerializingProducer):
        with pytest.raises(TypeError):
            kind(wrong)
    for aio in (AZAwareAIOProducer, AZAwareAIOSerializingProducer):
        with pytest.raises(TypeError):
            asyncio.run(make_aio(aio))


@pytest.mark.parametrize("name", ["error_cb", "stats_cb", "throttle_cb", "partitioner", "topic.partitioner"])
def test_a_setting_that_is_none_is_refused_as_by_the_bare_client(name: str) -> None:
    """It was taken, so a program that ran here failed with the bare client."""
    with pytest.raises((TypeError, ValueError, KafkaException)) as refused:
        Producer({**LEAST, name: None})
    with pytest.raises(refused.type, match=name.removeprefix("topic.")):  # as librdkafka names it
        AZAwareProducer({**LEAST, name: None})


def test_a_configuration_may_have_the_name_of_the_bare_class() -> None:
    """`conf` of `SerializingProducer`; it is given once."""
    AZAwareSerializingProducer(conf=LEAST, keys="local-hrw").close()
    AZAwareSerializingProducer(config=LEAST).close()
    for given in ({}, {"config": LEAST, "conf": LEAST}):
        with pytest.raises(TypeError, match="one configuration: config or conf"):
            AZAwareSerializingProducer(**given)


@pytest.mark.parametrize(
    ("placed", "named"),
    [
        ((), {"producer_conf": LEAST}),
        ((), {"config": LEAST}),
        ((LEAST, 2, None, 7, 0.5), {}),
        ((LEAST, 2), {"batch_size": 7, "keys": "local-hrw"}),
    ],
)
def test_the_asyncio_client_takes_its_arguments_as_the_bare_class(
    placed: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """By place, and the configuration by its name there."""

    async def run() -> int:
        producer = AZAwareAIOProducer(*placed, **named)
        await producer.close()
        return producer._batch_size

    assert asyncio.run(run()) == (7 if len(placed) > 3 or "batch_size" in named else 1000)


@pytest.mark.parametrize(
    ("placed", "named", "said"),
    [
        ((), {}, "the configuration is missing"),
        ((LEAST,), {"producer_conf": LEAST}, "multiple values for argument 'producer_conf'"),
        ((LEAST, 2), {"max_workers": 2}, "multiple values for argument 'max_workers'"),
        ((LEAST, 2, None, 7, 0.5, 1), {}, "at most 5 positional arguments"),
    ],
)
def test_wrong_arguments_of_the_asyncio_client_are_type_errors(
    placed: tuple[Any, ...], named: dict[str, Any], said: str
) -> None:
    """As Python's own, before anything starts."""

    async def run() -> None:
        AZAwareAIOProducer(*placed, **named)

    with pytest.raises(TypeError, match=said):
        asyncio.run(run())


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("led", [1, 0], ids=["leaders known", "leaders unknown"])
@pytest.mark.parametrize(
    "given",
    [
        {"partition": -1.0},
        {"partition": -1.0, "on_delivery": print},
        {"timestamp": 0.0},
        {"timestamp": 0.0, "key": b"k"},
    ],
    ids=str,
)
def test_a_float_that_equals_a_default_is_refused_as_by_the_bare_client(
    mock: MockCluster, given: dict[str, Any], led: int
) -> None:
    """`-1.0 == -1`: otherwise a float passes as long as it has this value, and fails with the next one."""
    mock.create(TOPIC, [1, 2, 3])
    bare, ours = Producer(config(mock)), AZAwareProducer(config(mock))
    if led:
        ours.produce(TOPIC, b"first")
    for producer in (bare, ours):
        with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
            producer.produce(TOPIC, b"v", **given)
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        ours.produce_batch(TOPIC, [{"value": b"v"}], partition=-1.0)  # type: ignore[arg-type]
    assert ours.flush(10) == 0
    assert sum(count.records for count in ours.traffic().zones.values()) == led
    ours.close()


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("partition", [np.int64(-1), np.int32(-1)], ids=repr)
def test_an_integer_of_another_library_names_no_partition_either(mock: MockCluster, partition: Any) -> None:
    """As by the bare client, which takes whatever Python takes as an index."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, b"v", partition=partition, timestamp=np.int64(0))  # type: ignore[arg-type]
    producer.produce_batch(TOPIC, [{"value": b"v"}], partition=partition)
    assert producer.flush(10) == 0
    assert producer.traffic().local.records == 2
    producer.close()


@pytest.mark.parametrize("topic", [None, 5, b"t", "a\0b", "\ud800"], ids=repr)
def test_an_empty_batch_is_refused_as_by_the_bare_client(mock: MockCluster, topic: Any) -> None:
    """A wrong name of a topic is found on the first call, not on the first one with messages."""
    bare, ours = Producer(config(mock)), AZAwareProducer(config(mock))
    with pytest.raises((TypeError, ValueError)) as refused:
        bare.produce_batch(topic, [])
    with pytest.raises(refused.type):
        ours.produce_batch(topic, [])
    assert ours.produce_batch(TOPIC, []) == 0
    ours.close()


@pytest.mark.parametrize("name", ["cost", "wire_cost", "replication_cost"])
def test_a_price_that_is_no_number_is_refused_by_name(name: str) -> None:
    """A price from the environment is text; the comparison's own error does not name it."""
    with pytest.raises(PolicyError, match=r"price_per_gb='0\.01', need a number, not str"):
        getattr(Traffic(rack="az-a"), name)("0.01")


def test_the_bound_of_a_guard_says_what_it_is() -> None:
    """The number is a ratio, and 1 would be perfect balance."""
    with pytest.raises(PolicyError, match=r"bound=0\.5, need a number above 1: bytes of the largest partition"):
        SkewGuard(bound=0.5)
