"""The consumer in a real group: what it commits by itself, and what it survives."""

import time
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Message, TopicPartition

from assignors import GroupConsumer, GroupMember, HRWAssignor, MembershipError
from tests.integration.assignors.conftest import Topics
from tests.records import offsets, read
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

RECORDS = 50


@pytest.fixture
def name(topics: Topics) -> str:
    """A topic of three partitions with records that are numbered."""
    (made,) = topics.make("t", partitions=3, replication=3)
    topics.fill([made], RECORDS)
    return made


def consumer(topics: Topics, **more: Any) -> GroupConsumer:
    """A consumer that commits nothing by itself."""
    return GroupConsumer({**topics.consumer_config(), **more}, assignors=[HRWAssignor(agent="a")])


def test_what_was_delivered_is_committed_at_the_end_and_by_the_clock(topics: Topics, name: str) -> None:
    """enable.auto.commit: the next consumer continues where this one's last call ended."""
    with consumer(topics, **{"enable.auto.commit": True, "auto.commit.interval.ms": 50}) as one:
        one.subscribe([name])
        first = read(one, 30)
        until = time.monotonic() + 10
        while not [p for p in one.committed(one.assignment()) if p.offset > 0]:
            assert time.monotonic() < until
            one.pause(one.assignment())
            one.poll(0.05)
        one.resume(one.assignment())
        first += read(one, 20)
    with consumer(topics) as two:
        two.subscribe([name])
        both = offsets([*first, *read(two, 3 * RECORDS - 50)])
    assert both == {n: list(range(RECORDS)) for n in range(3)}


def test_kafka_python_may_end_and_is_begun_again(topics: Topics, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """An error inside the membership loses the partitions and rejoins; the program continues to poll."""
    lost: list[int] = []
    with consumer(topics) as one:
        one.subscribe([name], on_lost=lambda _, partitions: lost.append(len(partitions)))
        read(one, 30)
        member = one._kafka_azimuth.membership.member
        assert isinstance(member, GroupMember)
        assert vars(member)["_GroupMember__listener"] is not None
        vars(member)["_GroupMember__listener"].fail(RuntimeError("inside the client"))
        again = read(one, 3 * RECORDS, timeout_s=30)
    assert lost == [3]
    assert offsets(again) == {n: list(range(RECORDS)) for n in range(3)}
    assert "joining again" in caplog.text


def test_what_was_lost_is_not_committed_by_the_one_who_gets_it_back(topics: Topics, name: str) -> None:
    """Put out of the group and back in it at once: in on_lost, and before it, old offsets are refused."""
    refused: list[str] = []

    def lost(one: GroupConsumer, partitions: list[TopicPartition]) -> None:
        try:
            one.commit(offsets=[TopicPartition(p.topic, p.partition, 1) for p in partitions], asynchronous=False)
        except MembershipError as error:
            refused.append(type(error).__name__)

    with consumer(topics) as one:
        one.subscribe([name], on_lost=lost)
        read(one, 30)
        member = one._kafka_azimuth.membership.member
        assert isinstance(member, GroupMember)
        # The coordinator refuses heartbeats of a generation that has passed, as after a long standstill.
        vars(member)["_GroupMember__consumer"]._coordinator._generation.generation_id -= 1
        member.wait_for(lambda now: not now.partitions, 20)
        with pytest.raises(MembershipError, match="not as awaited"):
            member.wait_for(lambda now: len(now.partitions) == 3, 2)
        until = time.monotonic() + 30
        while not refused or len(one.assignment()) < 3:
            assert time.monotonic() < until
            one.poll(0.05)
        assert refused == ["NotOwnedConsumerError"]
        assert {p.offset for p in one.committed(one.assignment())} == {OFFSET_INVALID}


@pytest.mark.long
def test_a_program_that_asks_for_nothing_leaves(topics: Topics, name: str) -> None:
    """max.poll.interval.ms: its partitions move to others, and its next poll reports the loss, as an error, too."""
    lost: list[int] = []
    with consumer(topics, **{"max.poll.interval.ms": 6000}) as one:
        one.subscribe([name], on_lost=lambda _, partitions: lost.append(len(partitions)))
        read(one, 3)
        member = one._kafka_azimuth.membership.member
        assert isinstance(member, GroupMember)
        member.wait_for(lambda now: not now.partitions, 20)
        assert lost == []
        assert (late := one.poll(10)) is not None
        assert (error := late.error()) is not None
        assert error.code() == KafkaError._MAX_POLL_EXCEEDED
        read(one, 3, timeout_s=30)
        assert lost == [3]


def test_a_newer_member_of_the_same_instance_ends_the_consumer(topics: Topics, name: str) -> None:
    """Two programs with one `group.instance.id` would take turns; the older one can neither read nor commit."""
    static = {"group.instance.id": "one"}
    with consumer(topics, **static) as older:
        older.subscribe([name])
        read(older, 3)
        with consumer(topics, **static) as newer:
            newer.subscribe([name])
            until = time.monotonic() + 60
            ended: KafkaException | None = None
            found: list[Message] = []
            while ended is None or len(found) < 3 * RECORDS - 3:
                assert time.monotonic() < until, (ended, len(found))
                if (message := newer.poll(0.05)) is not None and message.error() is None:
                    found.append(message)
                try:
                    older.poll(0.05)
                except KafkaException as error:
                    ended = error
            assert ended.args[0].code() == KafkaError.FENCED_INSTANCE_ID
            for call in (lambda: older.poll(0.1), lambda: older.consume(10, 0.1)):
                with pytest.raises(KafkaException) as again:
                    call()
                assert again.value.args[0].code() == KafkaError.FENCED_INSTANCE_ID
            with pytest.raises(MembershipError):
                older.commit(offsets=[TopicPartition(name, 0, 1)], asynchronous=False)
            begun = time.monotonic()
            older.close()
            assert time.monotonic() - begun < 20
            assert len(newer.assignment()) == 3


def test_a_taken_instance_id_is_waited_for_where_the_broker_assigns(topics: Topics, name: str) -> None:
    """KIP-848: the broker refuses the newer program, which hears it once, and reads when the older one has ended."""
    config = topics.broker_assigned_config(**{"group.instance.id": "one", "group.remote.assignor": "uniform"})
    with GroupConsumer(config) as newer:
        errors: list[str] = []
        with GroupConsumer(config) as older:
            older.subscribe([name])
            read(older, 3, timeout_s=30)
            newer.subscribe([name])
            until = time.monotonic() + 30
            while not errors:
                assert time.monotonic() < until
                if (message := newer.poll(0.1)) is not None and (error := message.error()) is not None:
                    errors.append(error.name())
        assert len(read(newer, 3 * RECORDS, timeout_s=60)) == 3 * RECORDS
    assert errors == ["UNRELEASED_INSTANCE_ID"]


def test_a_name_that_no_topic_can_have_is_an_error_of_that_topic_only(topics: Topics, name: str) -> None:
    """A text without `^` is a name, so an old pattern ends here; the other topics are read."""
    with consumer(topics) as one:
        one.subscribe([name, r"flights\..*"])
        until = time.monotonic() + 30
        records, errors = 0, dict[str | None, int]()
        while records < 3 * RECORDS or not errors:
            assert time.monotonic() < until, (records, errors)
            if (message := one.poll(0.1)) is None:
                continue
            if (error := message.error()) is None:
                records += 1
            else:
                errors[message.topic()] = error.code()
    assert errors == {r"flights\..*": KafkaError.TOPIC_EXCEPTION}


@pytest.mark.parametrize("before", ["t", "missing"])
def test_a_static_member_reads_its_second_subscription(topics: Topics, name: str, before: str) -> None:
    """The broker gives a static member that returns its old assignment, so this member leaves before it returns."""
    (other,) = topics.make("u", partitions=3, replication=3)
    first = f"{topics.prefix}.{before}"
    with consumer(topics, **{"group.instance.id": "one"}) as one:
        joined: list[int] = []
        one.subscribe([first], on_assign=lambda _, partitions: joined.append(len(partitions)))
        wait_until(lambda: (one.poll(0.05), joined)[1], 60)
        one.subscribe([name, other])
        wait_until(lambda: (one.poll(0.05), {p.topic for p in one.assignment()} == {name, other})[1], 15)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["synchronous", "asynchronous"])
@pytest.mark.parametrize("protocol", ["classic", "consumer", "by hand"])
def test_the_offset_of_a_deleted_topic_is_not_committed_again(
    topics: Topics, name: str, protocol: str, *, asynchronous: bool
) -> None:
    """A restarted program would begin at it once the recreated topic is that long, and skip the records before."""
    keys = [(name, n) for n in range(3)]
    config, broker_assigns = topics.consumer_config(), protocol == "consumer"
    if broker_assigns:
        classic_only = {"heartbeat.interval.ms", "session.timeout.ms"}
        config = {key: value for key, value in config.items() if key not in classic_only} | {"group.protocol": protocol}
    answers: list[KafkaError | None] = []
    config["on_commit"] = lambda error, _: answers.append(error)

    def commit(one: GroupConsumer) -> list[TopicPartition] | None:
        before = len(answers)
        committed = one.commit(asynchronous=asynchronous)
        if asynchronous:
            wait_until(lambda: (one.poll(0.05), len(answers) > before)[1])
        return committed

    with GroupConsumer(config, assignors=None if broker_assigns else [HRWAssignor(agent="a")]) as one:
        if protocol == "by hand":
            one.assign([TopicPartition(*key, 0) for key in keys])
        else:
            one.subscribe([name])
        read(one, 3 * RECORDS)
        commit(one)
        assert topics.committed(keys) == dict.fromkeys(keys, RECORDS)
        topics.delete(name)
        wait_until(lambda: not topics.committed(keys))
        wait_until(lambda: name not in topics.admin.list_topics(timeout=10).topics)
        topics.make("t", replication=3)
        assert commit(one) == (None if asynchronous else [TopicPartition(*key, RECORDS) for key in keys])
        assert topics.committed(keys) == {}
