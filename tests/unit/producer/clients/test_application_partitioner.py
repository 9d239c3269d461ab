"""A partitioner of the application, composed with the zone, on librdkafka's mock cluster."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from producer import AZAwareAIOProducer, AZAwareProducer, PolicyError, Reason
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config

LOCAL = (0, 3, 6)
pytestmark = pytest.mark.usefixtures("hot")


def by_length(key: bytes | None, candidates: Sequence[int]) -> int:
    """A partition by the length of the key."""
    return candidates[len(key or b"") % len(candidates)]


@pytest.mark.parametrize("count", ["queued", "delivered"])
@pytest.mark.parametrize("way", ["produce", "batch", "asyncio"])
def test_a_callable_chooses_among_the_partitions_of_the_zone(mock: MockCluster, way: str, count: str) -> None:
    """For each way to send; the text of a key arrives as bytes, and an explicit partition is not asked for."""
    mock.create(TOPIC, [1, 2, 3] * 3)
    asked: list[tuple[bytes | None, tuple[int, ...]]] = []

    def choose(key: bytes | None, candidates: Sequence[int]) -> int:
        asked.append((key, tuple(candidates)))
        return by_length(key, candidates)

    seen = Deliveries()
    if way == "asyncio":

        async def run() -> AZAwareAIOProducer:
            async with AZAwareAIOProducer(config(mock), choose=choose, count=count) as producer:
                sent = [await producer.produce(TOPIC, b"v", key) for key in (None, "ä", b"k")]
                sent.append(await producer.produce(TOPIC, b"v", partition=1))
                await producer.flush(60)
                for message in await asyncio.gather(*sent):
                    seen(None, message)
                return producer

        traffic = asyncio.run(run()).traffic()
    else:
        producer = AZAwareProducer(config(mock), choose=choose, count=count)
        if way == "batch":
            messages: list[dict[str, Any]] = [{"value": b"v", "key": key} for key in (None, "ä", b"k")]
            messages.append({"value": b"v", "partition": 1})
            assert producer.produce_batch(TOPIC, messages, on_delivery=seen) == 4
        else:
            for key in (None, "ä", b"k"):
                producer.produce(TOPIC, b"v", key, on_delivery=seen)
            producer.produce(TOPIC, b"v", partition=1, on_delivery=seen)
        assert producer.flush(60) == 0
        traffic = producer.traffic()
        producer.close()
    assert asked == [(None, LOCAL), ("ä".encode(), LOCAL), (b"k", LOCAL)]
    assert seen.partitions == {0: 1, 6: 1, 3: 1, 1: 1}
    assert traffic.reasons == {Reason.LOCAL: (3, 6), Reason.EXPLICIT: (1, 1)}


def test_round_robin_takes_turns_in_each_topic_and_random_reaches_all(mock: MockCluster) -> None:
    """One counter for two topics that alternate would give each topic every second partition only."""
    for topic in (TOPIC, "other"):
        mock.create(topic, [1, 2, 3] * 3)
    for name, counts in (("round_robin", {4}), ("random", set(range(1, 13)))):
        producer = AZAwareProducer(config(mock), choose=name)
        seen = {TOPIC: Deliveries(), "other": Deliveries()}
        for number in range(12 if name == "round_robin" else 100):
            for topic, deliveries in seen.items():
                producer.produce(topic, b"v", f"{number}", on_delivery=deliveries)
        assert producer.flush(60) == 0
        for deliveries in seen.values():
            assert set(deliveries.partitions) == set(LOCAL)
            if name == "round_robin":
                assert set(deliveries.partitions.values()) == counts
        producer.close()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (1, "returned partition 1, need one of 0, 3, 6"),
        (-1, "returned partition -1, need one of"),
        (99, "returned partition 99, need one of"),
        ("3", "failed with TypeError"),
        (None, "failed with TypeError"),
        (ValueError("no such shard"), "failed with ValueError: no such shard"),
    ],
    ids=str,
)
def test_a_choice_outside_the_zone_is_an_error_of_the_call(mock: MockCluster, answer: object, problem: str) -> None:
    """With the topic's name, and nothing is sent or counted."""
    mock.create(TOPIC, [1, 2, 3] * 3)

    def choose(_key: bytes | None, _candidates: Sequence[int]) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    producer = AZAwareProducer(config(mock), choose=choose)
    for call in (
        lambda: producer.produce(TOPIC, b"v"),
        lambda: producer.produce_batch(TOPIC, [{"value": b"v"}]),
    ):
        with pytest.raises(PolicyError, match=f"topic 'flights': choose.. {problem}"):
            call()
    assert len(producer) == 0
    assert producer.traffic().topics == {}
    producer.close()


def test_other_integers_are_partitions_too(mock: MockCluster) -> None:
    """Such as the result of a computation in numpy."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock), choose=lambda _key, candidates: np.int64(candidates[0]))  # type: ignore[arg-type, return-value]  # what users return
    producer.produce(TOPIC, b"v")
    assert producer.flush(60) == 0
    assert producer.traffic().local.records == 1
    producer.close()


def test_a_partitioner_that_does_not_exist_is_refused() -> None:
    """Value and way out."""
    with pytest.raises(PolicyError, match="choose='sticky': give 'random', 'round_robin', or a callable"):
        AZAwareProducer({"bootstrap.servers": "127.0.0.1:1", "client.rack": "az-a"}, choose="sticky")
