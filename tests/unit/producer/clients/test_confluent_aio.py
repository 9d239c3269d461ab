"""`AZAwareAIOProducer` against librdkafka's mock cluster."""

import asyncio
import threading
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import murmur2

from producer import AZAwareAIOProducer, AZAwareAIOSerializingProducer, Count, Reason
from producer.clients import leader_requests
from producer.metadata_requests import Lister, read_leaders
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, config, leaders_held_back


def test_the_asyncio_client_keeps_records_local_too(mock: MockCluster) -> None:
    """No key, a key, an explicit partition; counts and callbacks as in the synchronous client."""
    mock.create(TOPIC, [1, 2, 3] * 2)

    async def run() -> tuple[list[int | None], AZAwareAIOProducer]:
        async with AZAwareAIOProducer(config(mock), keys="local-hrw") as producer:
            futures = [await producer.produce(TOPIC, b"v" * 10, f"{n}" if n % 2 else None) for n in range(200)]
            futures.append(await producer.produce(TOPIC, b"v" * 10, partition=1))
            await producer.flush()
            return [message.partition() for message in await asyncio.gather(*futures)], producer

    partitions, producer = asyncio.run(run())
    assert set(partitions[:-1]) <= {0, 3}
    assert partitions[-1] == 1
    traffic = producer.traffic()
    assert (traffic.local.records, traffic.unknown.records) == (200, 0)
    assert traffic.cross == traffic.reasons[Reason.EXPLICIT] == (1, 10)


def test_the_asyncio_client_counts_nothing_that_it_refuses(mock: MockCluster) -> None:
    """The base class takes no headers and says so at once."""
    mock.create(TOPIC, [1])

    async def run() -> AZAwareAIOProducer:
        async with AZAwareAIOProducer(config(mock)) as producer:
            await producer.produce(TOPIC, b"v")
            with pytest.raises(NotImplementedError, match="Headers are not supported"):
                await producer.produce(TOPIC, b"v", headers=[("name", b"v")])
            return producer

    assert asyncio.run(run()).traffic().local == (1, 1)


@pytest.mark.parametrize("name", ["value", "key"])
@pytest.mark.parametrize("data", [5, bytearray(b"v")], ids=["number", "bytearray"])
def test_what_cannot_be_sent_is_refused_and_holds_up_no_other_record(
    mock: MockCluster,
    name: str,
    data: Any,
) -> None:
    """The base class takes it into its buffer, where it fails every flush from then on."""
    mock.create(TOPIC, [1, 2, 3])

    async def run() -> int:
        async with AZAwareAIOProducer(config(mock)) as producer:
            with pytest.raises(TypeError, match=f"the {name} must be str, bytes or None"):
                await producer.produce(TOPIC, **{name: data})
            report = await producer.produce(TOPIC, b"v")
            await producer.flush(10)
            assert (await report).error() is None
            return producer.traffic().local.records

    assert asyncio.run(run()) == 1


@pytest.mark.parametrize("found", [True, False], ids=["topic with leaders", "topic that cannot be read at first"])
def test_concurrent_calls_of_one_key_keep_their_order(mock: MockCluster, *, found: bool) -> None:
    """Each call awaited its own reading of a new topic, and the calls went on in any order (the base class: in order).

    Calls go on arriving while the topic is read, and at the moment it has been read.
    """
    mock.create(TOPIC, [1, 2, 3])
    if not found:
        mock.refuse(TOPIC, 5)  # LEADER_NOT_AVAILABLE, as right after a topic was created

    async def run() -> list[bytes | None]:
        async with AZAwareAIOProducer(config(mock), batch_size=10, buffer_timeout=0.05) as producer:
            sent = []
            for number in range(600):
                sent.append(asyncio.ensure_future(producer.produce(TOPIC, b"%d" % number, b"one key")))
                if number > 300:
                    await asyncio.sleep(0)
                if number == 450:
                    mock.refuse(TOPIC, 0)
            futures = await asyncio.gather(*sent)
            await producer.flush()
            messages = await asyncio.gather(*futures)
            return [one.value() for one in sorted(messages, key=lambda one: one.offset() or 0)]

    values = asyncio.run(run())
    assert sum(int(a or 0) > int(b or 0) for a, b in pairwise(values)) == 0
    assert len(values) == 600


def test_concurrent_calls_read_a_new_topic_once(mock: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """As threads do: each of them asked the cluster for the same topic, and took a thread of the loop's pool."""
    mock.create(TOPIC, [1, 2, 3])
    go = threading.Event()
    asked: list[str | None] = []

    def read(client: Lister, topic: str | None, *arguments: Any, **more: Any) -> Any:
        asked.append(topic)
        assert go.wait(60)
        return read_leaders(client, topic, *arguments, **more)

    monkeypatch.setattr(leader_requests, "read_leaders", read)

    async def run() -> Count:
        async with AZAwareAIOProducer(config(mock)) as producer:
            calls = [asyncio.ensure_future(producer.produce(TOPIC, b"v")) for _ in range(50)]
            while not asked or producer._kafka_azimuth.waiting[TOPIC].calls < len(calls):  # noqa: ASYNC110 - they know no event
                await asyncio.sleep(0.001)
            go.set()
            futures = await asyncio.gather(*calls)
            await producer.flush(10)
            await asyncio.gather(*futures)
            assert not producer._kafka_azimuth.waiting
            return producer.traffic().local

    assert asyncio.run(asyncio.wait_for(run(), 60)) == (50, 50)
    assert asked == [TOPIC]


@pytest.mark.parametrize("serializing", [False, True], ids=["plain", "serializing"])
@pytest.mark.parametrize("how", ["flush", "flush in time", "close"])
def test_records_that_wait_for_the_first_leaders_are_sent_before_the_end(
    mock: MockCluster, how: str, *, serializing: bool
) -> None:
    """As with the base class, `flush` and `close` wait for the records of all calls before them."""
    mock.create(TOPIC, [1, 2, 3])
    kind = AZAwareAIOSerializingProducer if serializing else AZAwareAIOProducer

    async def run() -> tuple[int, int, int]:
        producer = kind(config(mock))
        calls = [asyncio.ensure_future(producer.produce(TOPIC, value=b"v")) for _ in range(5)]
        await asyncio.sleep(0)
        waiting = len(producer)
        left = await (producer.close() if how == "close" else producer.flush(*([30] if how == "flush in time" else [])))
        done = sum(call.done() and call.result().done() for call in calls)
        if how != "close":  # the base class closes once
            await producer.close()
        return waiting, left or 0, done

    assert asyncio.run(asyncio.wait_for(run(), 60)) == (5, 0, 5)


def test_a_flush_in_time_counts_records_that_wait_for_leaders(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It returns after its timeout, with the number of records that were not sent."""
    mock.create(TOPIC, [1, 2, 3])
    go = leaders_held_back(monkeypatch)

    async def run() -> tuple[int, int]:
        producer = AZAwareAIOProducer(config(mock))
        calls = [asyncio.ensure_future(producer.produce(TOPIC, b"v")) for _ in range(5)]
        await asyncio.sleep(0)
        early = await producer.flush(timeout=0.01)
        go.set()
        late = await producer.flush()
        await asyncio.gather(*calls)
        await producer.close()
        return early, late

    assert asyncio.run(asyncio.wait_for(run(), 60)) == (5, 0)


def test_a_cancelled_call_holds_up_no_other(mock: MockCluster) -> None:
    """A request handler that is cancelled while the topic is read must not block the next one."""
    mock.create(TOPIC, [1, 2, 3])

    async def run() -> bytes | None:
        async with AZAwareAIOProducer(config(mock)) as producer:
            calls = [asyncio.ensure_future(producer.produce(TOPIC, b"%d" % number)) for number in range(3)]
            await asyncio.sleep(0)
            calls[0].cancel()
            calls[1].cancel()
            report = await calls[2]
            await producer.flush()
            assert producer._kafka_azimuth.waiting == {}
            value: bytes | None = (await report).value()
            return value

    assert asyncio.run(run()) == b"2"


@pytest.mark.parametrize("count", ["queued", "delivered"])
def test_records_that_do_not_fit_into_the_queue_do_not_count(mock: MockCluster, count: str) -> None:
    """They counted when they came into the base class's buffer, from which the client refuses them later."""
    mock.create(TOPIC, [1, 2, 3])

    async def run() -> None:
        settings = config(mock, **{"linger.ms": 60_000, "queue.buffering.max.messages": 20})
        async with AZAwareAIOProducer(settings, count=count, batch_size=7, buffer_timeout=0) as producer:
            futures, counted = [], []
            for number in range(70):
                futures.append(await producer.produce(TOPIC, b"v", None if number % 2 else "key"))
                counted.append(sum(one.records for one in producer.traffic().reasons.values()))
            assert counted == sorted(counted)
            assert counted[-1] == (len(producer._producer) if count == "queued" else 0) <= 20
            await producer.flush(10)
            results = await asyncio.gather(*futures, return_exceptions=True)
            sent = sum(not isinstance(one, BaseException) for one in results)
            assert 0 < sent < 70
            assert sum(one.records for one in producer.traffic().reasons.values()) == sent
            assert producer.traffic().delivered == (count == "delivered")

    asyncio.run(run())


def test_no_record_of_a_key_overtakes_another_in_a_full_queue(mock: MockCluster) -> None:
    """Some records of the key name its partition, so they are sent apart; the last ones alone would still fit."""
    mock.create(TOPIC, [1, 2, 3] * 2)

    async def run() -> list[bool]:
        settings = config(mock, **{"linger.ms": 60_000, "queue.buffering.max.kbytes": 4})
        async with AZAwareAIOProducer(settings, batch_size=5, buffer_timeout=0) as producer:
            own, futures = {"partition": murmur2(b"key", 6)}, []
            for number, size in enumerate((900, 2900, 900, 10, 10)):
                futures.append(await producer.produce(TOPIC, b"v" * size, b"key", **(own if number % 2 else {})))
            await producer.flush(10)
            return [isinstance(one, BaseException) for one in await asyncio.gather(*futures, return_exceptions=True)]

    assert asyncio.run(run()) == [False, False, True, True, True]


@pytest.mark.parametrize("keys", ["ignore", {"other": "global", "fl.*": "ignore", ".*": "global"}], ids=str)
@pytest.mark.parametrize("value", [b"v" * 100, b""], ids=["values", "no bytes"])
def test_ignored_keys_stay_local_and_change_partitions(
    mock: MockCluster, keys: str | dict[str, str], value: bytes
) -> None:
    """As in the synchronous client; records of no bytes end a run, too, by their overhead."""
    mock.create(TOPIC, [1, 2, 1, 3])

    async def run() -> set[int | None]:
        async with AZAwareAIOProducer(config(mock), keys=keys, batch_bytes=100, batch_size=50) as producer:
            sent = [await producer.produce(TOPIC, value, f"{n}" if value and n % 2 else None) for n in range(300)]
            await producer.flush(10)
            assert producer.traffic().local.records == 300
            return {message.partition() for message in await asyncio.gather(*sent)}

    assert asyncio.run(run()) == {0, 2}


def test_a_thread_that_polls_does_not_wait_for_a_loop_that_has_ended(mock: MockCluster) -> None:
    """A report of the statistics came when the loop had just stopped: the process then never ended."""
    mock.create(TOPIC, [1])
    loop = asyncio.new_event_loop()

    async def make() -> AZAwareAIOProducer:
        return AZAwareAIOProducer({**config(mock), "statistics.interval.ms": 10}, buffer_timeout=0)

    producer = loop.run_until_complete(make())
    polled = threading.Thread(target=producer._producer.poll, args=(10,), daemon=True)
    polled.start()
    polled.join(10)
    assert not polled.is_alive()
    loop.run_until_complete(producer.close())
    loop.close()
