"""The consumer with a cluster inside this process: its interface, and records that it must not deliver."""

import itertools
import os
import signal
import struct
import threading
import time
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, KafkaError, KafkaException, Message, Producer, TopicPartition

from assignors import GroupConsumer, GroupMember, HRWAssignor, MembershipError, NotOwnedError, Ownership
from assignors.consumer.record_steps import RecordSteps
from producer.testing import MockCluster
from tests.records import offsets, read
from tests.unit.assignors.conftest import RECORDS, consumer
from tests.waiting import wait_until


def test_the_whole_interface_on_one_way(mock: MockCluster) -> None:
    """Subscribe, poll, position, pause, seek, commit and come back: as confluent_kafka.Consumer does it."""
    told: list[tuple[str, list[int]]] = []
    commits: list[tuple[Exception | None, list[TopicPartition]]] = []

    def tell(event: str) -> Any:
        return lambda _, partitions: told.append((event, [p.partition for p in partitions]))

    with consumer(mock, on_commit=lambda error, partitions: commits.append((error, partitions))) as one:
        one.subscribe(["t"], on_assign=tell("assign"), on_revoke=tell("revoke"))
        assert offsets(read(one, 3 * RECORDS)) == {n: list(range(RECORDS)) for n in range(3)}
        assert one.poll(0) is None
        assert [p.partition for p in one.assignment()] == [0, 1, 2]
        assert {p.offset for p in one.position(one.assignment())} == {RECORDS}
        one.pause([TopicPartition("t", 1)])
        one.seek(TopicPartition("t", 1, 40))
        one.seek(TopicPartition("t", 2, 48))
        assert [p.offset for p in one.position(one.assignment())] == [RECORDS, OFFSET_INVALID, OFFSET_INVALID]
        assert offsets(read(one, 2)) == {2: [48, 49]}
        assert one.poll(0.2) is None
        one.resume([TopicPartition("t", 1)])
        assert offsets(read(one, 10)) == {1: list(range(40, 50))}
        assert one.commit(asynchronous=False) is not None
        one.commit(offsets=[TopicPartition("t", 0, 7)])
        one.commit(offsets=[TopicPartition("u", 0, 7)])
        with pytest.raises(NotOwnedError, match="'u' partition 0"):
            one.commit(offsets=[TopicPartition("u", 0, 7)], asynchronous=False)
        assert [p.offset for p in one.committed([*one.assignment(), TopicPartition("u", 0)])] == [
            7,
            RECORDS,
            RECORDS,
            OFFSET_INVALID,
        ]
        one.poll(0)
        assert [isinstance(error, NotOwnedError) for error, _ in commits] == [False, True]
    assert told == [("assign", [0, 1, 2]), ("revoke", [0, 1, 2])]
    with pytest.raises(MembershipError, match="closed"):
        one.poll(0)


def test_an_offset_that_no_record_has_is_refused_and_costs_no_partition(mock: MockCluster) -> None:
    """Librdkafka would refuse it after the partition was removed: never read again, and close() would raise, too."""
    refused: list[BaseException] = []

    def begin(one: GroupConsumer, partitions: list[TopicPartition]) -> None:
        with pytest.raises(KafkaException, match="below 0") as raised:
            one.seek(TopicPartition("t", partitions[0].partition, -7))
        refused.append(raised.value)

    with consumer(mock) as one:
        one.subscribe(["t"], on_assign=begin)
        assert len(read(one, 3 * RECORDS)) == 3 * RECORDS
        with pytest.raises(KafkaException, match="below 0"):
            one.seek(TopicPartition("t", 0, -7))
        with pytest.raises(KafkaException, match="committed"):
            one.seek(TopicPartition("t", 0, OFFSET_STORED))
        one.seek(TopicPartition("t", 0, RECORDS - 1))
        assert offsets(read(one, 1)) == {0: [RECORDS - 1]}
    assert len(refused) == 1


def test_a_message_without_its_place_commits_nothing(mock: MockCluster) -> None:
    """A program can make a Message of its own; what it leaves out must not become partition 0 or offset 1."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        read(one, 3 * RECORDS)
        with pytest.raises(NotOwnedError, match="partition -1"):
            one.commit(Message(topic="t", offset=4), asynchronous=False)
        for message, said in ((Message(topic="t", partition=0), "no offset"), (Message(offset=4), "no topic")):
            with pytest.raises(KafkaException, match=said):
                one.commit(message, asynchronous=False)
        assert one.committed([TopicPartition("t", 0)])[0].offset == OFFSET_INVALID


@pytest.mark.parametrize("call", ["poll", "consume"])
def test_a_call_that_finds_no_record_waits_in_few_steps(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Librdkafka waits whole milliseconds: what is left of the last one must not be spent in a busy loop."""
    waits: list[float] = []
    step_s = RecordSteps._step_s

    def counted(one: RecordSteps, now: float, until: float) -> float:
        waits.append(step_s(one, now, until))
        return waits[-1]

    with consumer(mock) as one:
        one.subscribe(["t"])
        assert len(read(one, 3 * RECORDS)) == 3 * RECORDS
        monkeypatch.setattr(RecordSteps, "_step_s", counted)
        for _ in range(5):
            assert not (one.poll(0.0505) if call == "poll" else one.consume(1, 0.0505))
    assert 5 <= len(waits) <= 5 * 4, waits


def test_properties_are_also_taken_by_name(mock: MockCluster) -> None:
    """As in confluent_kafka.Consumer: they replace those of the mapping, which may be left out."""
    names: dict[str, Any] = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "by-name"}
    for one in (GroupConsumer(**names), GroupConsumer({"group.id": 5.5}, **names)):
        with one:
            one.assign([TopicPartition("t", 0, 0)])
            assert one.consumer_group_metadata() is not None
            assert offsets(read(one, 3))[0] == [0, 1, 2]
    for wrong in (None, [("group.id", "g")], "group.id"):
        with pytest.raises(KafkaException, match="need a mapping"):
            GroupConsumer(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_name_that_is_no_valid_text_is_refused(mock: MockCluster, protocol: str) -> None:
    """Librdkafka gets no bytes for it, and ends the process."""
    config = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "group.protocol": protocol}
    with GroupConsumer(config) as one, pytest.raises(KafkaException, match="surrogate"):
        one.subscribe(["t", "\ud800"])


def test_nothing_is_delivered_that_is_not_owned(mock: MockCluster) -> None:
    """If a program was too slow for its group, fetched records of another member's partitions are not delivered."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        read(one, 3)
        member = one._kafka_azimuth.membership.member
        assert isinstance(member, GroupMember)
        vars(member)["_GroupMember__cell"].change(Ownership.outside)
        assert one._kafka_azimuth.fetching.take(1000, [1.0], member.ownership) == []


def test_fetched_records_are_dropped_with_their_partition(mock: MockCluster) -> None:
    """Records from before a removal are not delivered after it, although librdkafka had them in its queue."""
    owned = Ownership().plus([("t", n) for n in range(3)], 1)
    with consumer(mock) as one:
        fetching = one._kafka_azimuth.fetching
        fetching.add(dict.fromkeys([("t", 0), ("t", 1)], 0))
        until = time.monotonic() + 20
        while not fetching.take(1, [0.1], lambda: owned):
            assert time.monotonic() < until
        fetching.remove([("t", 0)])
        fetching.add({("t", 0): 30})
        found: list[Message] = []
        while len(offsets(found).get(0, ())) < 20:
            assert time.monotonic() < until
            found += fetching.take(1000, [0.1], lambda: owned)
        assert offsets(found)[0] == list(range(30, 50))


def test_without_a_subscription_no_poll_waits_forever(mock: MockCluster) -> None:
    """An error instead of an endless wait; with a timeout there is no record, as in confluent-kafka."""
    with consumer(mock) as one:
        assert one.poll(0) is None
        with pytest.raises(KafkaException, match="subscribe"):
            one.poll()


@pytest.mark.parametrize("topics", ["^flights", "t", [], [""], [5], ["^("]], ids=repr)
def test_what_is_no_list_of_topics_is_refused(mock: MockCluster, topics: Any) -> None:
    """A text is a sequence of letters, and the letter ^ would be a pattern for every topic of the cluster."""
    with consumer(mock) as one, pytest.raises(MembershipError, match="subscribe"):
        one.subscribe(topics)


def test_an_interrupt_with_records_in_hand_loses_none(mock: MockCluster) -> None:
    """If Ctrl-C comes during a wait for more, the records taken so far are not committed, and are delivered again."""
    with consumer(mock, **{"enable.auto.commit": True}) as one:
        one.subscribe(["t"])
        first = read(one, 30)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            one.consume(10_000, 30)
        timer.join()
        signal.signal(signal.SIGINT, before)
        next_ones = {p.partition: p.offset for p in one.position(one.assignment()) if p.offset >= 0}
        assert sum(next_ones.values()) == 30
        assert offsets([*first, *read(one, 3 * RECORDS - 30)]) == {n: list(range(RECORDS)) for n in range(3)}


def test_a_close_in_another_thread_leaves_the_records_in_hand_to_the_caller(mock: MockCluster) -> None:
    """close() commits them as delivered, so an error instead of them would lose them."""
    one = consumer(mock, **{"enable.auto.commit": True})
    one.subscribe(["t"])
    found: list[Message] = []
    reader = threading.Thread(target=lambda: found.extend(one.consume(10_000, 60)))
    reader.start()
    wait_until(lambda: sum(max(0, at.offset) for at in one.position(one.assignment())) == 3 * RECORDS)
    one.close()
    reader.join(20)
    assert offsets(found) == {n: list(range(RECORDS)) for n in range(3)}


@pytest.mark.parametrize("auto", [True, False])
def test_stored_offsets_are_committed_while_the_program_works(mock: MockCluster, auto: bool) -> None:  # noqa: FBT001 -- a parameter
    """A batch may take minutes: a program that dies in it would repeat all of its records."""
    config = {"enable.auto.commit": auto, "auto.commit.interval.ms": 100, "enable.auto.offset.store": False}
    with consumer(mock, **config) as one, consumer(mock) as other:
        one.subscribe(["t"])
        found = read(one, 3 * RECORDS)

        def stored() -> bool:
            one.store_offsets(found[0])
            (committed,) = other.committed([TopicPartition("t", found[0].partition() or 0)], 10)
            return committed.offset == 1

        if auto:
            wait_until(stored)
        else:
            until = time.monotonic() + 1
            while time.monotonic() < until:
                assert not stored()


def test_a_commit_that_is_due_does_not_keep_a_waiting_call_busy(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With records in hand nothing is committed, and each wait would end at once."""
    steps = itertools.count()
    real = RecordSteps.consume
    monkeypatch.setattr(RecordSteps, "consume", lambda *given: real(*given) if next(steps) >= 0 else None)
    with consumer(mock, **{"enable.auto.commit": True, "auto.commit.interval.ms": 100}) as one:
        one.subscribe(["t"])
        assert len(one.consume(10_000, 4)) == 3 * RECORDS
        assert next(steps) < 1_000


def test_questions_are_answered_as_by_confluents_consumer(mock: MockCluster) -> None:
    """Without a subscription, only librdkafka answers."""
    with consumer(mock) as one:
        assert len(one.list_topics("t", 20).topics["t"].partitions) == 3
        assert "t" in one.list_topics(timeout=20).topics
        assert one.get_watermark_offsets(TopicPartition("t", 1), timeout=20) == (0, RECORDS)
        assert [p.partition for p in one.offsets_for_times([TopicPartition("t", 2, 0)], timeout=20)] == [2]


def test_an_error_is_not_committed(mock: MockCluster) -> None:
    """The offset of an error is no record's."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        with pytest.raises(MembershipError, match="is an error"):
            one.commit(Message(topic="t", partition=0, error=KafkaError(KafkaError._PARTITION_EOF)))


def test_a_second_consumer_with_the_same_assignor_is_refused_by_its_poll(mock: MockCluster) -> None:
    """Otherwise its program would wait for records without end, while the member joins again and again."""
    shared = HRWAssignor(agent="a", cooperative=True)
    first, second = (
        GroupConsumer(
            {"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "log_level": 0},
            assignors=[shared],
            member={"api_version": (2, 0)},
        )
        for _ in range(2)
    )
    with first, second:
        first.subscribe(["t"])
        wait_until(lambda: first.poll(0.05) is None and len(first.assignment()) == 3)
        second.subscribe(["t"])
        with pytest.raises(KafkaException, match="make one for each consumer"):
            second.poll(20)
        with pytest.raises(MembershipError, match="make one for each consumer"):
            second.poll(20)
        assert len(first.assignment()) == 3


@pytest.mark.parametrize("end", ["close", "unsubscribe"])
def test_many_asynchronous_commits_end_soon(mock: MockCluster, end: str) -> None:
    """450 commits at 50 ms a round trip made close() and each revocation take 27 s; each still reaches on_commit."""
    answers: list[Exception | None] = []
    one = consumer(mock, on_commit=lambda error, _: answers.append(error))
    one.subscribe(["t"])
    found = read(one, 3 * RECORDS)
    for broker in mock.racks:
        mock.delay(broker, 50)
    for message in found * 3:
        one.commit(message)
    begun = time.monotonic()
    getattr(one, end)()
    assert time.monotonic() - begun < 10
    one.close()
    assert answers == [None] * 9 * RECORDS


@pytest.mark.parametrize("assignors", [HRWAssignor(), "hrw", ["hrw"]], ids=["no list", "a text", "a name"])
def test_assignors_that_are_none_are_refused_at_once(assignors: object) -> None:
    """The bare TypeErrors named no argument: 'HRWAssignor' object is not iterable, 'str' object is not callable."""
    with pytest.raises(MembershipError, match=r"assignors=.* need .*\[HRWAssignor\(\)\]"):
        GroupConsumer(
            {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}, assignors=cast("list[HRWAssignor]", assignors)
        )


@pytest.mark.parametrize("given", [HRWAssignor, HRWAssignor(cooperative=True)], ids=["a class", "an assignor"])
def test_the_group_gets_the_clients_rack_of_an_assignor_that_was_made_without_one(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, given: type[HRWAssignor] | HRWAssignor
) -> None:
    """assignors=[HRWAssignor] or [HRWAssignor()] together with client.rack lost the locality."""
    sent: list[str | None] = []
    metadata = HRWAssignor.metadata

    def noted(assignor: HRWAssignor, topics: set[str]) -> Any:
        found = metadata(assignor, topics)
        sent.append(found.rack_id)
        return found

    monkeypatch.setattr(HRWAssignor, "metadata", noted)
    config = {"bootstrap.servers": mock.bootstrap_servers, "group.id": f"rack-{given}", "client.rack": "az-b"}
    with GroupConsumer(config, assignors=cast("list[HRWAssignor]", [given]), member={"api_version": (2, 0)}) as one:
        one.subscribe(["t"])
        wait_until(lambda: one.poll(0.05) is None and bool(one.assignment()), 20)
    assert set(sent) == {"az-b"}


@pytest.mark.parametrize("at_once", [0, 1, 7], ids=["poll", "consume 1", "consume 7"])
def test_a_rebalance_takes_back_what_was_read_ahead(mock: MockCluster, at_once: int) -> None:
    """A member neither delivers nor commits records of revoked partitions that its program has not received."""
    with consumer(mock, **{"enable.auto.commit": True}) as one:
        one.subscribe(["t"])
        count = 0
        while count < 40 or not one._kafka_azimuth.ahead.left():
            count += len(one.consume(at_once, 0.2)) if at_once else one.poll(0.2) is not None
            assert count < 3 * RECORDS
        counted = {p.partition: p.offset for p in one.position(one.assignment()) if p.offset > 0}
        assert sum(counted.values()) == count
    with consumer(mock) as two:
        committed = two.committed([TopicPartition("t", n) for n in range(3)], 10)
        assert sum(p.offset for p in committed if p.offset > 0) == count


def test_offsets_are_committed_in_a_producers_transaction(mock: MockCluster) -> None:
    """The metadata carries generation and member id; the producer takes it. The mock keeps no such offsets."""
    with consumer(mock, **{"group.instance.id": "one"}) as named:
        assert named.consumer_group_metadata().endswith(b"g\0\0\0one\0")
    config = {"bootstrap.servers": mock.bootstrap_servers, "transactional.id": "x", "log_level": 0}
    with consumer(mock) as one:
        one.subscribe(["t"])
        read(one, 3)
        producer = Producer(config)
        producer.init_transactions(20)
        producer.begin_transaction()
        now = one.ownership()
        metadata = one.consumer_group_metadata()
        assert metadata == b"CGMDv2:" + struct.pack("<i", now.generation) + f"g\0{now.member_id}\0\1".encode()
        producer.send_offsets_to_transaction([TopicPartition("t", 0, 33)], metadata, 20)
        producer.commit_transaction(20)
        with pytest.raises(KafkaException):
            producer.send_offsets_to_transaction([TopicPartition("t", 0, 33)], metadata[:9], 20)
