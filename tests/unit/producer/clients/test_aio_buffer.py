"""Flushes of `AZAwareAIOProducer` that meet, are cancelled or fail, against librdkafka's mock cluster."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
from confluent_kafka import KafkaException

from producer import AZAwareAIOProducer
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, config


async def almost_full(producer: AZAwareAIOProducer) -> list[asyncio.Future[Any]]:
    """Fill the buffer of a producer with `batch_size=60` but for one record, when it knows the leaders."""
    await producer.produce(TOPIC, b"v", b"the first leaders")
    await producer.flush()
    return [await producer.produce(TOPIC, b"v", b"%d" % number) for number in range(59)]


def held_back(producer: AZAwareAIOProducer, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Hold back what the producer hands over until the event is set."""
    buffer, go = producer._kafka_azimuth.buffer, threading.Event()
    send = buffer._send
    monkeypatch.setattr(buffer, "_send", lambda *batch: go.wait() and send(*batch))
    return go


@pytest.mark.parametrize("batch_size", [5, 20])
def test_a_flush_overtakes_no_records_of_another_one(mock: MockCluster, batch_size: int) -> None:
    """The base class hands over partition by partition, and a second flush met records of a later partition first."""
    mock.create(TOPIC, [1, 2, 3] * 4)
    random = Random(1)
    keys = [random.randrange(24) for _ in range(1500)]

    async def run() -> dict[int, list[int]]:
        async with AZAwareAIOProducer(config(mock), batch_size=batch_size, buffer_timeout=0) as producer:
            await producer.produce(TOPIC, b"v", b"the first leaders")
            await producer.flush()
            calls = []
            for number, key in enumerate(keys):
                calls.append(asyncio.ensure_future(producer.produce(TOPIC, b"%d" % number, b"%d" % key)))
                if number % 50 == 0:
                    await asyncio.sleep(0)
            futures = await asyncio.gather(*calls)
            assert await producer.flush() == 0
            values: dict[int, list[int]] = {}
            for message in sorted(await asyncio.gather(*futures), key=lambda one: one.offset() or 0):
                values.setdefault(int(message.key() or 0), []).append(int(message.value() or 0))
            return values

    assert asyncio.run(run()) == {key: [n for n, one in enumerate(keys) if one == key] for key in set(keys)}


def test_a_cancelled_call_loses_no_record_of_other_calls(mock: MockCluster) -> None:
    """A timeout of the call that fills the buffer dropped the records of all partitions after the first ones."""
    mock.create(TOPIC, [1, 2, 3] * 4)

    async def run() -> int:
        async with AZAwareAIOProducer(config(mock), batch_size=60, buffer_timeout=0) as producer:
            futures = await almost_full(producer)
            full = asyncio.ensure_future(producer.produce(TOPIC, b"v", b"full"))
            await asyncio.sleep(0)
            full.cancel()
            assert await producer.flush() == 0
            return len(await asyncio.wait_for(asyncio.gather(*futures), 20))

    assert asyncio.run(run()) == 59


def test_a_flush_waits_for_the_records_of_a_flush_that_runs(mock: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It returned 0 while the timeout of the buffer still handed over records: a commit would leave these out."""
    mock.create(TOPIC, [1, 2, 3] * 4)

    async def run() -> int:
        async with AZAwareAIOProducer(config(mock), batch_size=60, buffer_timeout=0) as producer:
            futures = await almost_full(producer)
            go = held_back(producer, monkeypatch)
            full = asyncio.ensure_future(producer.produce(TOPIC, b"v", b"full"))
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.2, go.set)
            assert await producer.flush() == 0
            delivered = sum(future.done() for future in futures)
            await full
            return delivered

    assert asyncio.run(run()) == 59


def test_a_purge_removes_the_records_that_a_flush_hands_over(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client got them after the purge, and sent them."""
    mock.create(TOPIC, [1, 2, 3] * 4)
    settings = {**config(mock), "linger.ms": 10_000}

    async def run() -> set[type]:
        async with AZAwareAIOProducer(settings, batch_size=60, buffer_timeout=0) as producer:
            futures = await almost_full(producer)
            go = held_back(producer, monkeypatch)
            full = asyncio.ensure_future(producer.produce(TOPIC, b"v", b"full"))
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.2, go.set)
            await producer.purge()
            futures.append(await full)
            await producer.flush()
            return {type(one) for one in await asyncio.gather(*futures, return_exceptions=True)}

    assert asyncio.run(run()) == {KafkaException}


def test_a_flush_is_one_call_of_the_executor(mock: MockCluster) -> None:
    """One for each partition, and one to poll, took half of the bare client's rate with 12 partitions."""
    mock.create(TOPIC, [1, 2, 3] * 4)
    calls = []

    class Counting(ThreadPoolExecutor):
        def submit(self, /, *args: Any, **kwargs: Any) -> Any:
            calls.append(args)
            return super().submit(*args, **kwargs)

    async def run() -> set[int]:
        own = AZAwareAIOProducer(config(mock), executor=Counting(4), batch_size=60, buffer_timeout=0)
        async with own as producer:
            await producer.produce(TOPIC, b"v", b"the first leaders")
            await producer.flush()
            calls.clear()
            futures = [await producer.produce(TOPIC, b"v", b"%d" % number) for number in range(60)]
            handed_over = len(calls)
            await producer.flush()
            assert handed_over == 1
            return {message.partition() for message in await asyncio.gather(*futures)}

    assert len(asyncio.run(run())) > 6


def test_a_call_that_is_cancelled_before_its_thread_begins_loses_no_record(mock: MockCluster) -> None:
    """The executor then drops the call, and nothing would send the records that it had taken from the buffer."""
    mock.create(TOPIC, [1, 2, 3] * 4)
    executor = ThreadPoolExecutor(1)
    busy = threading.Event()

    async def run() -> int:
        async with AZAwareAIOProducer(config(mock), executor=executor, batch_size=60, buffer_timeout=0) as producer:
            futures = await almost_full(producer)
            executor.submit(busy.wait)
            full = asyncio.ensure_future(producer.produce(TOPIC, b"v", b"full"))
            await asyncio.sleep(0)
            full.cancel()
            await asyncio.wait([full])
            busy.set()
            async with asyncio.timeout(20):
                while not all(future.done() for future in futures):  # also without a later flush
                    await producer.poll(0.1)
            assert await producer.flush() == 0
            return len(await asyncio.wait_for(asyncio.gather(*futures), 20))

    try:
        assert asyncio.run(run()) == 59
    finally:
        busy.set()


def test_records_of_a_closed_producer_end_with_its_error(mock: MockCluster) -> None:
    """The first call only fills the buffer; nothing would end its future after the second one has taken the buffer."""
    mock.create(TOPIC, [1])

    async def run() -> BaseException | None:
        async with AZAwareAIOProducer(config(mock), batch_size=2, buffer_timeout=0) as producer:
            await producer.produce(TOPIC, b"v", b"the first leaders")
        first = await producer.produce(TOPIC, b"v")
        with pytest.raises(RuntimeError, match="after shutdown"):
            await producer.produce(TOPIC, b"v")
        return first.exception()

    assert isinstance(asyncio.run(run()), RuntimeError)


def test_a_batch_that_cannot_be_sent_sends_no_other_one_twice(mock: MockCluster) -> None:
    """The base class puts all batches of a flush back, also those that it has sent, and sends them in each flush."""
    mock.create(TOPIC, [1, 2, 3] * 4)

    async def run() -> tuple[BaseException | None, list[int]]:
        async with AZAwareAIOProducer(config(mock), buffer_timeout=0) as producer:
            sent = [await producer.produce(TOPIC, b"v", b"%d" % number) for number in range(30)]
            refused = await producer.produce("no\0name", b"v")
            with pytest.raises(ValueError, match="null"):
                await producer.flush()
            sent += [await producer.produce(TOPIC, b"v", b"%d" % number) for number in range(30)]
            assert await producer.flush() == 0
            found = await asyncio.wait_for(asyncio.gather(*sent), 20)
            last: dict[int, int] = {}
            for message in found:
                last[message.partition()] = message.offset()
            return refused.exception(), [sum(last.values()) + len(last), len(found)]

    error, (stored, sent) = asyncio.run(run())
    assert isinstance(error, ValueError)
    assert stored == sent


def test_a_callback_of_the_client_may_send_records_and_wait_for_them(mock: MockCluster) -> None:
    """A thread waits for its coroutine while it polls: a flush that held up other flushes meanwhile never ended."""
    mock.create(TOPIC, [1, 2, 3] * 4)
    sent: list[Any] = []

    async def run() -> None:
        async def send(report: str) -> None:
            if not sent:  # once: each report takes a thread of the base class until its coroutine ends
                sent.append(report)
                await producer.produce("reports", report[:10])
                await producer.flush(1)

        settings = {**config(mock), "statistics.interval.ms": 100, "stats_cb": send}
        async with AZAwareAIOProducer(settings, batch_size=1, buffer_timeout=0) as producer:
            while not sent:
                await producer.produce(TOPIC, b"v", b"key")

    async def in_time() -> None:
        await asyncio.wait_for(run(), 60)

    mock.create("reports", [1])
    asyncio.run(in_time())
    assert sent
