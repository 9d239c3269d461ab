"""Every way to send a record times every way in which it can end, compared with a model, on the mock cluster."""

import asyncio
import json
from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from producer import AZAwareAIOProducer, AZAwareProducer, Count, Reason, Traffic
from producer.clients import leader_watcher
from producer.clients.client_statistics import Statistics
from producer.clients.leader_watcher import LeaderWatcher
from producer.decisions.producer_settings import ZonePolicy
from producer.metadata_requests import Topology
from producer.partitioning.topics_in_use import TopicsInUse
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
    def produce(self, key: str | bytes | None, own: int | None, pairs: Any, *, own_callback: bool) -> None:  # noqa: ANN401 - as the base class types it
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


@pytest.mark.parametrize("sends", [False, True], ids=["no record", "own partitions only"])
def test_reports_are_taken_from_a_producer_that_loads_no_topic(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, *, sends: bool
) -> None:
    """The thread that takes them started with the first topic only, and they filled the memory until then."""
    monkeypatch.setattr(leader_watcher, "_GRACE_S", 0.0)
    mock.create(TOPIC, [1])
    fast = config(mock, **{"statistics.interval.ms": 20})
    producer = AZAwareProducer(fast, refresh_s=0.1, racks=mock.racks)
    if sends:
        producer.produce(TOPIC, b"v", partition=0)
    wait_until(lambda: producer.traffic().wire_bytes)
    producer.close()

    async def run() -> None:
        async with AZAwareAIOProducer(fast, refresh_s=0.1, racks=mock.racks) as aio:
            if sends:
                await aio.produce(TOPIC, b"v", partition=0)
            while not aio.traffic().wire_bytes:  # noqa: ASYNC110 - the other thread knows no event
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), 120))


def test_bytes_on_the_wire_never_fall(mock: MockCluster) -> None:
    """The estimate before the first report was larger than the report, which Prometheus takes for a restart."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 50, "compression.type": "gzip"}))
    seen = [0]

    def wire() -> int:
        producer.poll(0)
        seen.append(sum(one.bytes for one in producer.traffic().wire_topics.values()))
        return seen[-1]

    for _ in range(20):
        producer.produce(TOPIC, b"v" * 10_000)
        wire()
    assert producer.flush(60) == 0
    wait_until(lambda: wire() and producer._kafka_azimuth.statistics._topics)
    wire()
    assert seen == sorted(seen)
    assert not producer.traffic().wire_estimated
    producer.close()


def test_bytes_on_the_wire_do_not_fall_when_librdkafka_forgets_a_broker_or_a_topic() -> None:
    """It drops a broker that the metadata lacks for a while, with its counters, which then begin at 0 again."""
    in_use = TopicsInUse(ZonePolicy(rack="az-a"))
    topology = Topology({}, {1: "az-a"})
    statistics = Statistics(in_use, LeaderWatcher(lambda: None, in_use, topology), topology)
    statistics.with_defaults({})
    seen = []
    for sent in (100, 250, None, 0, 40, 60):
        brokers = {} if sent is None else {"1": {"nodeid": 1, "state": "UP", "txbytes": sent}}
        partition = {
            "txmsgs": sent,
            "txbytes": sent,
            "leader": 1,
            "msgq_bytes": 0,
            "xmit_msgq_bytes": 0,
            "msgs_inflight": 0,
        }
        topics = {} if sent is None else {TOPIC: {"partitions": {"0": partition}, "batchsize": {"sum": 10}}}
        statistics.on_report(json.dumps({"ts": 0, "brokers": brokers, "topics": topics}))
        traffic = statistics.complete(in_use.traffic())
        seen.append((traffic.wire_bytes["az-a"], traffic.wire_topics[TOPIC, "az-a"].records))
    assert seen == [(total, total) for total in (100, 250, 250, 250, 290, 310)]


def test_bytes_on_the_wire_stay_in_the_zone_that_their_broker_had() -> None:
    """They moved from "unknown" when racks became known, and with each broker that came back in another rack."""
    in_use = TopicsInUse(ZonePolicy(rack="az-a"))
    topology = Topology({}, {})
    statistics = Statistics(in_use, LeaderWatcher(lambda: None, in_use, topology), topology)
    statistics.with_defaults({})
    seen, costs = [], []
    for sent, rack in enumerate([None, "az-b", "az-a"], start=1):
        topology._racks = {1: rack}
        brokers = {"1": {"nodeid": 1, "state": "UP", "txbytes": sent * 100}}
        statistics.on_report(json.dumps({"ts": 0, "brokers": brokers, "topics": {}}))
        seen.append(statistics.complete(in_use.traffic()).wire_bytes)
        costs.append(statistics.complete(in_use.traffic()).wire_cost() or 0.0)
    assert seen == [{"unknown": 100}, {"unknown": 100, "az-b": 100}, {"unknown": 100, "az-b": 100, "az-a": 100}]
    assert costs == sorted(costs)


def test_records_of_a_topic_wait_for_the_racks_of_their_leaders(mock: MockCluster) -> None:
    """A new broker's rack is read a second later: until then its bytes cost nothing, and stayed so for ever."""
    mock.create(TOPIC, [1, 2])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 600_000}))
    idle = {"msgq_bytes": 0, "xmit_msgq_bytes": 0, "msgs_inflight": 0}
    topology = producer._kafka_azimuth.topology
    seen = []
    for records, racks in (
        (5, {1: "az-a"}),
        (6, {1: "az-a"}),
        (7, {1: "az-a", 2: "az-b"}),
        (8, {1: "az-a", 2: "az-b"}),
    ):
        topology._racks = dict(racks)
        partitions = {
            str(number): {**idle, "txmsgs": records, "txbytes": records * 50, "leader": leader}
            for number, leader in enumerate((1, 2))
        }
        brokers = {"2": {"nodeid": 2, "state": "UP", "txbytes": records * 100}}
        topics = {TOPIC: {"partitions": partitions, "batchsize": {"sum": 100}}}
        producer._kafka_azimuth.statistics.on_report(json.dumps({"ts": 0, "brokers": brokers, "topics": topics}))
        traffic = producer.traffic()
        seen.append((traffic.wire_bytes, traffic.wire_topics))
    producer.close()
    assert seen[0] == seen[1] == ({}, {})
    assert seen[2] == ({"az-b": 700}, {(TOPIC, "az-a"): (7, 150), (TOPIC, "az-b"): (7, 150)})
    assert seen[3] == ({"az-b": 800}, {(TOPIC, "az-a"): (8, 200), (TOPIC, "az-b"): (8, 200)})


@pytest.mark.parametrize(
    ("later", "counted"),
    [
        pytest.param([(10, 3), (6, 2)], {"az-a": 10, "az-b": 6}, id="a leader moves"),
        pytest.param([(2, 1), (1, 2)], {"az-a": 12, "az-b": 6}, id="the topic is recreated"),
    ],
)
def test_records_that_wait_for_a_rack_belong_to_the_leader_that_took_them(
    mock: MockCluster, later: list[tuple[int, int]], counted: dict[str, int]
) -> None:
    """They were added to the leader at the end of the wait, and those of a topic that was recreated were lost."""
    mock.create(TOPIC, [1, 2])
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 600_000}))
    idle = {"msgq_bytes": 0, "xmit_msgq_bytes": 0, "msgs_inflight": 0}
    known = {1: "az-a"}
    for racks, sent in ((known, [(10, 1), (5, 2)]), ({**known, 2: "az-b", 3: "az-c"}, later)):
        producer._kafka_azimuth.topology._racks = dict(racks)
        partitions = {
            str(number): {**idle, "txmsgs": records, "txbytes": records * 50, "leader": leader}
            for number, (records, leader) in enumerate(sent)
        }
        topics = {TOPIC: {"partitions": partitions, "batchsize": {"sum": 100}}}
        producer._kafka_azimuth.statistics.on_report(json.dumps({"ts": 0, "brokers": {}, "topics": topics}))
    traffic = producer.traffic().wire_topics
    producer.close()
    assert {zone: count.records for (_, zone), count in traffic.items()} == counted
    assert sum(count.bytes for count in traffic.values()) == 200


def test_bytes_do_not_wait_for_racks_that_the_application_gives(mock: MockCluster) -> None:
    """A broker that the given racks lack gets none later; the whole topic had no figures for a minute."""
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 600_000}), racks={1: "az-a"})
    one = {"txmsgs": 5, "txbytes": 250, "leader": 2, "msgq_bytes": 0, "xmit_msgq_bytes": 0, "msgs_inflight": 0}
    brokers = {"2": {"nodeid": 2, "state": "UP", "txbytes": 300}}
    topics = {TOPIC: {"partitions": {"0": one}, "batchsize": {"sum": 100}}}
    producer._kafka_azimuth.statistics.on_report(json.dumps({"ts": 0, "brokers": brokers, "topics": topics}))
    traffic = producer.traffic()
    producer.close()
    assert (traffic.wire_bytes, traffic.wire_topics) == ({"unknown": 300}, {(TOPIC, "unknown"): (5, 100)})


@pytest.mark.parametrize(
    "reports",
    [
        [(5, 100), (5, 0), (5, 0)],
        [(0, 100), (5, 0), (5, 0)],
        [(5, 0), (5, 100), (5, 0)],
        [(3, 40), (5, 60), (5, 0)],
        [(3, 0), (5, 40), (5, 60), (5, 0)],
    ],
    ids=["together", "batch first", "records first", "both twice", "a batch late"],
)
def test_each_batch_has_its_bytes_on_the_wire_two_reports_later_at_most(
    mock: MockCluster, reports: list[tuple[int, int]]
) -> None:
    """A report is written while batches are; the bytes of the last batch waited for the topic's next record."""
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 600_000}), racks=mock.racks)
    for records, batches in reports:
        one = {
            "txmsgs": records,
            "txbytes": records * 50,
            "leader": 2,
            "msgq_bytes": 0,
            "xmit_msgq_bytes": 0,
            "msgs_inflight": 0,
        }
        topics = {TOPIC: {"partitions": {"0": one}, "batchsize": {"sum": batches}}}
        producer._kafka_azimuth.statistics.on_report(json.dumps({"ts": 0, "brokers": {}, "topics": topics}))
    assert producer.traffic().wire_topics == {(TOPIC, "az-b"): (5, 100)}
    producer.close()
