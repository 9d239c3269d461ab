"""Every way to send a record times every way in which it can end, compared with a model, on the mock cluster."""

import asyncio
from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from producer import AZAwareAIOProducer, AZAwareProducer, Count, Reason, Traffic
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until

EXAMPLES = settings(
    max_examples=6, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
ROOM = 4
keys = st.sampled_from([None, b"", b"k", "ä"])
own_partitions = st.sampled_from([None, -1, 1, 2, 99])
headers = st.sampled_from([None, [("h", b"12345")], {"n": None}])


def reasons(traffic: Traffic) -> dict[Reason, Count]:
    """The records and bytes by reason, and the same figures by topic must add up."""
    total = Count()
    for one in traffic.topics.values():
        total = total.plus(one)
    assert total == (
        sum(one.records for one in traffic.reasons.values()),
        sum(one.bytes for one in traffic.reasons.values()),
    )
    return {reason: one for reason, one in traffic.reasons.items() if one.records}


class Model:
    """What a counter must show: records that wait, and records that count."""

    def __init__(self, count: str, chosen: Reason = Reason.LOCAL) -> None:
        self.count = count
        self.chosen = chosen
        self.waiting: list[tuple[Reason, int]] = []
        self.counted: dict[Reason, Count] = {}

    def queue(self, size: int, own: int | None) -> None:
        """A record that the client has accepted."""
        record = self.chosen if own in {None, -1} else Reason.EXPLICIT, size
        self.waiting.append(record)
        if self.count == "queued":
            self._book(*record)

    def deliver(self) -> None:
        """All waiting records have arrived."""
        for record in self.waiting if self.count == "delivered" else ():
            self._book(*record)
        self.waiting.clear()

    def _book(self, reason: Reason, size: int) -> None:
        self.counted[reason] = self.counted.get(reason, Count()).plus(Count(1, size))


class Sending(RuleBasedStateMachine):
    """A producer in az-a with room for a few records, which leave at a flush only."""

    mock: ClassVar[MockCluster]
    count: ClassVar[str]
    created: ClassVar[int] = 0

    @initialize()
    def create(self) -> None:
        """A topic of its own for each example."""
        small = {"queue.buffering.max.messages": ROOM, "linger.ms": 60_000}
        self.reported = Deliveries()
        settings_of_it = config(self.mock, on_delivery=self.reported, **small)
        self.producer = AZAwareProducer(settings_of_it, keys="local-hrw", count=self.count)
        self.model = Model(self.count)
        self.change_topic()

    def change_topic(self) -> None:
        """Produce to a new topic."""
        Sending.created += 1
        self.topic = f"{TOPIC}-{Sending.created}"
        self.mock.create(self.topic, [1, 2, 3])
        self.producer._kafka_azimuth.watcher.load(self.topic)

    @rule(key=keys, own=own_partitions, pairs=headers, own_callback=st.booleans())
    def produce(self, key: str | bytes | None, own: int | None, pairs: Any, *, own_callback: bool) -> None:
        """One record, with everything that it may have."""
        full, refused = len(self.model.waiting) >= ROOM, own == 99
        more: dict[str, Any] = {"on_delivery": Deliveries()} if own_callback else {}
        try:
            self.producer.produce(self.topic, b"value", key, -1 if own is None else own, headers=pairs, **more)
        except Exception:  # noqa: BLE001 - the client's errors are compared elsewhere
            assert full or refused
            return
        assert not full
        assert not refused
        pair_bytes = {None: 0, list: 6, dict: 1}[None if pairs is None else type(pairs)]
        self.model.queue(5 + len(key.encode() if isinstance(key, str) else key or b"") + pair_bytes, own)

    @rule(
        batch=st.lists(st.tuples(keys, own_partitions, headers, st.booleans()), max_size=4),
        of_all=st.sampled_from([-1, 1]),
    )
    def produce_batch(self, batch: list[tuple[Any, int | None, Any, bool]], of_all: int) -> None:
        """Many records; their headers are not sent, and some have a callback or a partition of their own."""
        messages: list[dict[str, Any]] = [
            {"value": b"value", "key": key, "partition": own, "headers": pairs}
            | ({"callback": Deliveries()} if own_callback else {})
            for key, own, pairs, own_callback in batch
        ]
        sent = self.producer.produce_batch(self.topic, messages, of_all)
        queued = [message for message in messages if "_error" not in message]
        assert sent == len(queued)
        for message in queued:
            key = message["key"]
            own = message["partition"] if of_all == -1 else of_all
            self.model.queue(5 + len(key.encode() if isinstance(key, str) else key or b""), own)

    @rule()
    def flush(self) -> None:
        """Deliver."""
        assert self.producer.flush(60) == 0
        self.model.deliver()

    @rule()
    def purge(self) -> None:
        """Drop; a purge may reach records that are queued after it, but those of no topic that is new after it."""
        self.producer.purge()
        wait_until(lambda: self.producer.poll(0.01) >= 0 and len(self.producer) == 0)
        self.model.waiting.clear()
        self.change_topic()

    @invariant()
    def counters_are_those_of_the_model(self) -> None:
        """By reason, and by topic and zone."""
        if hasattr(self, "producer"):
            assert reasons(self.producer.traffic()) == self.model.counted

    def teardown(self) -> None:
        """End the client."""
        if hasattr(self, "producer"):
            self.flush()
            self.counters_are_those_of_the_model()
            self.producer.close()


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("count", ["queued", "delivered"])
def test_each_record_counts_once_with_its_bytes_and_reason(mock: MockCluster, count: str) -> None:
    """However it is sent and whatever becomes of it: a bill is made of these figures, and a counter never falls."""
    machine = type("Machine", (Sending,), {"mock": mock, "count": count})
    run_state_machine_as_test(machine, settings=EXAMPLES)


@pytest.mark.parametrize("count", ["queued", "delivered"])
def test_each_record_of_the_asyncio_client_counts_once(mock: MockCluster, count: str) -> None:
    """A partition of None is no partition. A purged record counts never: it was only in the base class's buffer."""
    created: Counter[str] = Counter()
    steps = st.lists(st.one_of(st.tuples(keys, own_partitions), st.sampled_from(["flush", "purge"])), max_size=10)

    @EXAMPLES
    @given(steps)
    def check(steps: list[Any]) -> None:
        asyncio.run(run(steps))

    def new_topic() -> str:
        created["topics"] += 1
        topic = f"{TOPIC}-{created['topics']}"
        mock.create(topic, [2, 2, 3])  # in another zone, an explicit partition differs from a chosen one
        return topic

    async def run(steps: list[Any]) -> None:
        model = Model("delivered", Reason.NO_LOCAL_LEADER)
        futures: list[asyncio.Future[Any]] = []
        settings_of_it = config(mock, **{"linger.ms": 60_000})
        async with AZAwareAIOProducer(
            settings_of_it, keys="local-hrw", count=count, batch_size=100, buffer_timeout=0
        ) as producer:
            await asyncio.to_thread(producer._kafka_azimuth.watcher.load, topic := new_topic())
            for step in [*steps, "flush"]:
                if step == "flush":
                    await producer.flush(60)
                    await asyncio.gather(*futures)
                    futures.clear()
                    model.deliver()
                elif step == "purge":
                    await producer.purge()
                    futures.clear()
                    model.waiting.clear()
                    # A purge may reach records that are queued after it, but those of no topic that is new after it.
                    await asyncio.to_thread(producer._kafka_azimuth.watcher.load, topic := new_topic())
                elif step[1] != 99:
                    key, own = step
                    futures.append(await producer.produce(topic, b"value", key, partition=own))
                    model.queue(5 + len(key.encode() if isinstance(key, str) else key or b""), own)
                assert reasons(producer.traffic()) == model.counted

    check()


@pytest.mark.parametrize("wrong", [{"partition": "1"}, {"timestamp": 5}], ids=str)
def test_what_the_asyncio_client_cannot_send_is_refused_at_the_call(mock: MockCluster, wrong: dict[str, Any]) -> None:
    """Its buffer would keep the record, and every later flush would fail because of it."""
    mock.create(TOPIC, [1, 2, 3])

    async def run() -> Traffic:
        async with AZAwareAIOProducer(config(mock)) as producer:
            with pytest.raises((TypeError, NotImplementedError)):
                await producer.produce(TOPIC, b"v", **wrong)
            await producer.produce(TOPIC, b"v", partition=None)
            await producer.flush(60)
            return producer.traffic()

    assert asyncio.run(run()).reasons == {Reason.LOCAL: (1, 1)}


def test_a_message_keeps_its_own_partition_before_the_leaders_are_known(mock: MockCluster) -> None:
    """The client ignores it, so librdkafka chose for such a message until the first answer of the cluster."""
    mock.create(TOPIC, [1, 2, 3])
    seen = Deliveries()
    producer = AZAwareProducer(config(mock), metadata_timeout_s=0)
    assert producer.produce_batch(TOPIC, [{"value": b"v", "partition": 2}] * 20, on_delivery=seen) == 20
    assert producer.flush(60) == 0
    assert seen.partitions == {2: 20}
    producer.close()
