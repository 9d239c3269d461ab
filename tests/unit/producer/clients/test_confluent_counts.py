"""The counts of `AZAwareProducer`, on librdkafka's mock cluster."""

from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from producer import AZAwareProducer
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, config, leaders_held_back
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("hot")


def test_counts_never_fall_while_a_queue_is_full(mock: MockCluster) -> None:
    """A batch was counted before it was queued, and the refused part taken back: Prometheus takes that for a reset."""
    mock.create(TOPIC, [1, 2, 3])
    # Without statistics: `len(producer)` counts a report that waits for a poll as well.
    settings = config(mock, **{"queue.buffering.max.messages": 20, "linger.ms": 10_000, "statistics.interval.ms": 0})
    producer = AZAwareProducer(settings, keys="local-hrw", count="queued")
    producer.produce(TOPIC, b"v")
    counts: list[int] = []

    class Observed(dict[str, Any]):
        """A message that looks at the counts whenever it is read."""

        def get(self, *arguments: Any) -> Any:
            counts.append(producer.traffic().local.records)
            return super().get(*arguments)

    for _ in range(10):
        batch: list[Any] = [Observed(value=b"v", key=f"{number}" if number % 2 else None) for number in range(7)]
        sent = producer.produce_batch(TOPIC, batch)
        counts.append(producer.traffic().local.records)
        assert sent == sum("_error" not in message for message in batch)
    assert counts == sorted(counts)
    assert counts[-1] == len(producer) == 20
    producer.purge()
    producer.close()


def test_money_on_the_wire_is_after_compression(mock: MockCluster) -> None:
    """3.0 MB were billed where 0.2 MB went over the wire."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 50, "compression.type": "gzip"}))
    producer.produce(TOPIC, b"v")
    for _ in range(300):
        producer.produce(TOPIC, b"v" * 10_000, partition=1)
    assert producer.flush(20) == 0
    reported: list[float] = []

    def settled() -> bool:
        producer.poll(0.1)
        reported.append(producer.traffic().wire_cost() or 0.0)
        return reported[-1] > 0 and reported[-3:].count(reported[-1]) == len(reported[-3:]) > 1

    wait_until(settled, 10)
    assert reported == sorted(reported)
    assert producer.traffic().cost() >= 300 * 10_000 / 1e9 * 0.01
    assert reported[-1] < producer.traffic().cost() / 10
    producer.close()


def test_tombstones_and_text_count_their_bytes(mock: MockCluster) -> None:
    """Bytes are counted as sent: UTF-8, and no value for a tombstone."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, None, b"gone")
    producer.produce(TOPIC, "Zürich", "ä", headers={"h": b"v"}, timestamp=1)
    producer.produce(TOPIC)
    assert producer.flush(10) == 0
    assert producer.traffic().local == (3, 4 + 7 + 2 + 2)
    producer.close()


@pytest.mark.parametrize("headers", [[("a", b"1"), ("\ud800", b"v")], {"\ud800": b"v"}], ids=["list", "mapping"])
@pytest.mark.parametrize("count", ["queued", "delivered"])
@pytest.mark.parametrize("more", [{}, {"partition": 1}, {"key": b"k"}], ids=str)
def test_a_header_whose_name_cannot_be_sent_is_refused(
    mock: MockCluster, headers: object, count: str, more: dict[str, Any]
) -> None:
    """The base class ends the process by a signal: it converts the name to UTF-8 without a check."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock), count=count)
    for _ in range(2):  # before and after the leaders are known
        with pytest.raises(ValueError, match=r"header '\\ud800': the name cannot be encoded as UTF-8"):
            producer.produce(TOPIC, b"v", headers=headers, **more)
        producer.produce(TOPIC, b"v")
        assert producer.flush(10) == 0
    assert producer.traffic().zones["az-a"].records == 2
    producer.close()


def test_headers_weigh_as_the_client_sends_them(mock: MockCluster) -> None:
    """The client sends a name of another type as its text; other headers of the record weighed nothing then."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, b"v", headers=[(10, b"12"), ("a", b"345")])
    assert producer.flush(10) == 0
    assert producer.traffic().local.bytes == 1 + 4 + 4
    producer.close()


@pytest.mark.parametrize("asked", [False, True], ids=["not asked before", "asked before"])
@pytest.mark.parametrize("count", ["delivered", "queued"])
def test_records_before_the_first_leaders_count_for_their_zone(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, count: str, *, asked: bool
) -> None:
    """Records with an explicit partition do not wait for leaders; figures that were already reported never fall."""
    mock.create(TOPIC, [1, 2, 3])
    may_read = leaders_held_back(monkeypatch)
    producer = AZAwareProducer(config(mock), count=count)
    for number in range(30):
        producer.produce(TOPIC, b"v", partition=number % 3)
    assert producer.produce_batch(TOPIC, [{"value": b"v", "partition": 1}]) == 1
    assert producer.flush(20) == 0
    if asked:
        assert producer.traffic().unknown == (31, 31)
    may_read.set()
    wait_until(lambda: TOPIC in producer._kafka_azimuth.topics_in_use.partitioners)
    zones = {zone: count.records for zone, count in producer.traffic().zones.items() if count.records}
    assert zones == ({"unknown": 31} if asked else {"az-a": 10, "az-b": 11, "az-c": 10})
    producer.close()


def test_a_refused_second_constructor_changes_no_count(mock: MockCluster) -> None:
    """As in the base class, the open client goes on; its counts never fall."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock))
    for expected in (1, 2):
        producer.produce(TOPIC, b"v")
        assert producer.flush(10) == 0
        with pytest.raises(RuntimeError, match="already"):
            producer.__init__(config(mock))  # type: ignore[misc]  # a call that programs should not make
        assert producer.traffic().local.records == expected
    producer.close()


@pytest.mark.parametrize("kind", [Producer, AZAwareProducer])
def test_a_producer_that_was_never_constructed_can_be_closed(kind: type[Producer]) -> None:
    """A subclass may close it in `__del__` or `finally`, when its own constructor failed before the base class's."""
    assert kind.__new__(kind).close() is True
    assert kind.__new__(kind).__exit__(None, None, None) is None


def test_a_constructor_may_be_called_again_after_it_failed(mock: MockCluster) -> None:
    """As that of the base class, which has no client then."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer.__new__(AZAwareProducer)
    with pytest.raises(KafkaException):
        producer.__init__(config(mock, nosuch=1))  # type: ignore[misc]
    with pytest.raises(RuntimeError):
        producer.produce(TOPIC, b"v")
    producer.__init__(config(mock))  # type: ignore[misc]
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    assert producer.traffic().local.records == 1
    producer.close()
