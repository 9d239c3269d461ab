"""A program's subclass may give its attributes and methods any names: none of them is one of this project's own."""

import asyncio
import re
import types
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, SerializingProducer
from confluent_kafka.aio import AIOConsumer, AIOProducer
from confluent_kafka.serialization import StringSerializer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.partitioner.abc import Partitioner

from assignors import (
    AIOGroupConsumer,
    BrokerAssignedMember,
    GroupConsumer,
    GroupMember,
    HRWAssignor,
    ShuffledRoundRobinAssignor,
)
from producer import (
    AZAwareAIOProducer,
    AZAwareAIOSerializingProducer,
    AZAwarePartitioner,
    AZAwareProducer,
    AZAwareSerializingProducer,
    TrafficMeter,
)
from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS

# The project's name, or Python's own form of a private name of one class.
_OWN: Final = re.compile(r"_kafka_azimuth(_\w+)?|_(\w*Assignor|\w+Member|AZAwarePartitioner|TrafficMeter)__\w+|__\w+__")
_OF_GROUP: Final = {"auto.offset.reset": "earliest", "log_level": 0}
_CLASSIC: Final = {"api_version": (2, 0)}

Made = Callable[[type, str], Any]
"""Makes an instance of a subclass, for a cluster with these servers."""


def _consumer(kind: type, servers: str) -> Any:
    more = {} if kind in {Consumer, AIOConsumer} else {"assignors": [HRWAssignor(agent="a")], "member": _CLASSIC}
    return kind({**_OF_GROUP, "group.id": uuid.uuid4().hex, "bootstrap.servers": servers}, **more)


def _producer(kind: type, servers: str) -> Any:
    return kind({"bootstrap.servers": servers, "client.rack": "az-a", "log_level": 0})


def _serializer(kind: type, servers: str) -> Any:
    serializers = {"key.serializer": StringSerializer(), "value.serializer": StringSerializer()}
    return kind({"bootstrap.servers": servers, "client.rack": "az-a", "log_level": 0, **serializers})


def _member(kind: type, servers: str) -> Any:
    return kind({"bootstrap_servers": servers, "group_id": "g"}, topics=["t"], assignors=[HRWAssignor()])


def _broker_member(kind: type, servers: str) -> Any:
    return kind({"bootstrap.servers": servers, "group.id": "g", "group.protocol": "consumer"}, topics=["t"])


def _plain(kind: type, _servers: str) -> Any:
    return kind()


def _meter(kind: type, servers: str) -> Any:
    return kind({"bootstrap.servers": servers})


# Each class that a program may subclass, the one whose place it takes, and how both are made.
KINDS: Final[Mapping[type, tuple[type, Made]]] = {
    GroupConsumer: (Consumer, _consumer),
    AIOGroupConsumer: (AIOConsumer, _consumer),
    AZAwareProducer: (Producer, _producer),
    AZAwareAIOProducer: (AIOProducer, _producer),
    AZAwareSerializingProducer: (SerializingProducer, _serializer),
    AZAwareAIOSerializingProducer: (AIOProducer, _serializer),
    AZAwarePartitioner: (Partitioner, _plain),
    TrafficMeter: (object, _meter),
    GroupMember: (object, _member),
    BrokerAssignedMember: (object, _broker_member),
    HRWAssignor: (AbstractPartitionAssignor, _plain),
    ShuffledRoundRobinAssignor: (AbstractPartitionAssignor, _plain),
}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A topic of three partitions with records."""
    with MockCluster() as made:
        made.wait_for_members(50)
        made.create("t", [1, 2, 3])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers, "log_level": 0})
        for number in range(RECORDS * 3):
            producer.produce("t", b"v", partition=number % 3)
        assert producer.flush(20) == 0
        yield made.bootstrap_servers


def _names(one: object) -> set[str]:
    return {*dir(one), *getattr(one, "__dict__", {})}


def _awaited(kind: type) -> bool:
    return issubclass(kind, AIOConsumer | AIOProducer)


def _with(kind: type, made: Made, servers: str, use: Callable[[Any], Any]) -> Any:
    """Make one, use it and end it; in an event loop if its calls are awaited."""

    async def awaited() -> Any:
        one = made(kind, servers)
        found = use(one)
        try:
            return await found if asyncio.iscoroutine(found) else found
        finally:
            await one.close()

    if _awaited(kind):
        return asyncio.run(awaited())
    one = made(kind, servers)
    try:
        return use(one)
    finally:
        getattr(one, "close", lambda: None)()


def _bare_names(kind: type, servers: str) -> set[str]:
    bare, made = KINDS[kind]
    if bare in {object, Partitioner, AbstractPartitionAssignor}:
        return set(dir(bare))
    found: set[str] = _with(bare, _producer if bare is AIOProducer else made, servers, _names)
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_private_name_is_one_that_a_subclass_may_have(kind: type, servers: str) -> None:
    """The bare client is a type in C without such names: a subclass of it keeps its `_config` there."""
    own = _with(kind, KINDS[kind][1], servers, _names) - _bare_names(kind, servers)
    assert [name for name in sorted(own) if name.startswith("_") and not _OWN.fullmatch(name)] == []


_WORDS: Final = re.findall(
    r"\w+",
    """
    ahead answered arm ask assign assigned assignor assignors awake before begin bytes cache call callback
    callbacks calls cell check client clients close closed closing cluster commit commit_timeout commits
    committed conf config configuration connect consume consumer consumers context cooperative copies count
    counted counts delivered deliveries destinations direct done dropped end ended epsilon error errors executor
    fetch fetching flush follow_up futures_count gate generation group group_consumer groups hand_over handle
    handler handlers hot init initialized inner instance is_initialized item items keep key keys kind last
    lifetime listener lock log logger longest_queue loop lost member members membership message messages
    metadata name names node offset offsets on_assign on_lost on_revoke options order overrides owned partition
    partitioner partitioners partitions parts plan policy poll position produce produce_chosen produce_now
    produce_refused produce_uncommon producer program progress put_back queue queued quick rack racks read ready
    rebalance received record records refused registry reports result retry revoked rewind run running seed seek
    seen send send_batch serializer serializers serve served set settings setup start started state statistics
    stats status steps stop stopped store stored subscribe subscription take task tasks thread threads timeout
    timer topic topics topics_in_use topology traffic turn unsettled until update usable use value values wait
    waiting waiting_calls warn warned watch watcher weight weights withheld work worker workers
    """,
)


def _subclass(kind: type, taken: set[str]) -> type:
    """A subclass with a method, an attribute before and one after the initialization of each private name.

    Args:
        kind: the class.
        taken: the names of the bare client, which a subclass of that one may not take either.
    """
    names = [f"_{word}" for word in _WORDS if f"_{word}" not in taken]
    before, after, methods = names[::3], names[1::3], names[2::3]

    def initialize(self: Any, *args: Any, **more: Any) -> None:
        for name in before:
            assert not hasattr(self, name), name
            setattr(self, name, name)
        kind.__init__(self, *args, **more)  # type: ignore[misc]  # of this very class
        for name in after:
            assert not hasattr(self, name), name
            setattr(self, name, name)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a method of the program was called")

    def check(self: object) -> None:
        assert all(vars(self)[name] == name for name in (*before, *after))

    body = {"__init__": initialize, "check": check, **dict.fromkeys(methods, refuse)}
    return types.new_class("Own", (kind,), {}, lambda space: space.update(body))


def _consume(one: GroupConsumer) -> None:
    assigned: list[int] = []
    one.subscribe(["t"], on_assign=lambda _, partitions: assigned.append(len(partitions)), on_revoke=_commit)
    found = [one.poll(20)]
    found += one.consume(9, 20)
    found += one.consume(3 * RECORDS - 10, 20)
    assert len(found) == 3 * RECORDS
    one.seek(one.position(one.assignment())[0])
    one.pause(one.assignment())
    one.resume(one.assignment())
    one.commit(asynchronous=True)
    assert one.commit(asynchronous=False)
    assert [at.offset for at in one.committed(one.assignment(), 20)] == [RECORDS] * 3
    assert one.memberid()
    assert one.consumer_group_metadata()
    assert one.list_topics("t", timeout=20)
    assert one.get_watermark_offsets(one.assignment()[0], timeout=20) == (0, RECORDS)
    assert sum(assigned) == 3
    one.unsubscribe()


def _commit(one: GroupConsumer, _partitions: object) -> None:
    one.commit(asynchronous=False)


async def _consume_awaited(one: AIOGroupConsumer) -> None:
    await one.subscribe(["t"])
    found = [await one.poll(20)]
    found += await one.consume(9, 20)
    found += await one.consume(3 * RECORDS - 10, 20)
    assert len(found) == 3 * RECORDS
    cancelled = asyncio.create_task(one.poll(20))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert await one.commit(asynchronous=False)
    assert [at.offset for at in await one.committed(await one.assignment(), 20)] == [RECORDS] * 3
    await one.unsubscribe()


def _produce(one: AZAwareProducer) -> None:
    for number in range(20):
        one.produce("names", value="v", key=str(number))
        one.produce("names", value="v")
    one.produce("names", value="v", partition=0, on_delivery=lambda _error, _message: None)
    assert one.produce_batch("names", [{"value": b"v", "key": b"k"}, {"value": b"v", "partition": 0}]) == 2
    assert one.flush(20) == 0
    one.refresh_leaders()
    assert sum(count.records for count in one.traffic().zones.values()) == 43


async def _produce_awaited(one: AZAwareAIOProducer) -> None:
    sent = [await one.produce("names", value="v", key=str(number)) for number in range(20)]
    await one.flush(20)
    assert len(await asyncio.gather(*sent)) == 20
    assert sum(count.records for count in one.traffic().zones.values()) == 20


def _join(one: GroupMember) -> None:
    with one:
        assert len(one.wait_joined(20).partitions) == 3
        one.commit({("t", 0): 1}, 20)
        assert one.committed([("t", 0)], 20) == {("t", 0): 1}


USES: Final[Mapping[type, Callable[[Any], object]]] = {
    GroupConsumer: _consume,
    AIOGroupConsumer: _consume_awaited,
    AZAwareProducer: _produce,
    AZAwareSerializingProducer: _produce,
    AZAwareAIOProducer: _produce_awaited,
    AZAwareAIOSerializingProducer: _produce_awaited,
}


@pytest.mark.parametrize("kind", USES, ids=lambda kind: kind.__name__)
def test_a_subclass_with_likely_names_works(kind: type, servers: str) -> None:
    """Otherwise `self._config = ...` in a program that changed its base class breaks its consumer without an error."""
    made = KINDS[kind][1]

    def use(one: Any) -> object:
        one.check()
        found = USES[kind](one)
        if not asyncio.iscoroutine(found):
            one.check()
        return found

    own = _subclass(kind, _bare_names(kind, servers))
    _with(own, made, servers, use)


def test_a_member_and_an_assignor_with_likely_names_work(servers: str) -> None:
    """A subclass of HRWAssignor has a `_plan` or `_weights` of its own sooner than a consumer has."""
    assignor = _subclass(HRWAssignor, set(dir(AbstractPartitionAssignor)))(agent="a", workers=2)
    member = _subclass(GroupMember, set(dir(object)))(
        {"bootstrap_servers": servers, "group_id": "m", "api_version": (2, 0)},
        topics=["t"],
        assignors=[assignor],
    )
    _join(member)
    member.check()
    assignor.check()
