"""The effects of rebalances on a consumer: callbacks, starting offsets, and revocations."""

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from assignors import GroupConsumer, GroupMember, HRWAssignor, MembershipError
from assignors.consumer.consumer_errors import ConsumerError
from assignors.member.membership_thread import MemberThread
from producer.testing import MockCluster
from tests.records import offsets, read
from tests.unit.assignors.conftest import RECORDS, consumer
from tests.unit.assignors.consumer.scripted_member import ScriptedMember


def test_a_callback_says_where_to_begin_and_polls_nothing(mock: MockCluster) -> None:
    """Offsets kept elsewhere are given in on_assign; a poll in there would wait for itself."""
    refused: list[Exception] = []

    def begin(one: GroupConsumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            partition.offset = 45
        one.assign([*partitions[:2], TopicPartition("t", 2)])
        one.seek(partitions[2])
        try:
            one.poll(0)
        except MembershipError as error:
            refused.append(error)

    with consumer(mock) as one:
        one.subscribe(["^t"], on_assign=begin)
        assert offsets(read(one, 15)) == {n: list(range(45, 50)) for n in range(3)}
        assert len(refused) == 1
        with pytest.raises(MembershipError, match="the group assigns"):
            one.assign([TopicPartition("u", 0, 1)])


def test_poll_is_refused_in_on_assign_also_if_records_are_there(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a cooperative rebalance, in which the records of other partitions stay."""
    one = consumer(mock)
    monkeypatch.setattr(one._kafka_azimuth.membership._members, "_of_classic", lambda *_: ScriptedMember(one))
    refused: list[str] = []

    def ask(own: GroupConsumer, _: object) -> None:
        for call in (lambda: own.poll(0), lambda: own.consume(1, 0)):
            try:
                call()
            except ConsumerError as error:
                refused.append(str(error))

    one.subscribe(["t"], on_assign=ask)
    member: Any = one._kafka_azimuth.membership.member
    member.assign([("t", 0)])
    until = time.monotonic() + 20
    while not one._kafka_azimuth.fetching.ahead.left():
        assert time.monotonic() < until
        one.poll(0.1)
    member.assign([("t", 1)])
    one.poll(0.1)
    assert len(refused) == 4
    one.close()


@pytest.mark.parametrize(("reset", "elsewhere"), [("earliest", list(range(RECORDS))), ("latest", []), ("error", None)])
def test_it_begins_where_the_group_has_committed_and_elsewhere_at_the_reset(
    mock: MockCluster, reset: str, elsewhere: list[int] | None
) -> None:
    """Of three partitions one has an offset; the others begin at an end of their logs, or are errors that say so."""
    before = Consumer({"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "log_level": 0})
    before.commit(offsets=[TopicPartition("t", 1, 20)], asynchronous=False)
    before.close()
    wanted = RECORDS - 20 + 2 * (1 if elsewhere is None else len(elsewhere))
    found: list[Message] = []
    with consumer(mock, **{"auto.offset.reset": reset}) as one:
        one.subscribe(["t"])
        until = time.monotonic() + 30
        while len(found) < wanted and time.monotonic() < until:
            found += one.consume(100, 0.2)
    errors = [error.code() for message in found if (error := message.error()) is not None]
    assert errors == ([KafkaError._AUTO_OFFSET_RESET] * 2 if elsewhere is None else [])
    read_of = offsets([message for message in found if message.error() is None])
    assert read_of == {n: expected for n in range(3) if (expected := list(range(20, RECORDS)) if n == 1 else elsewhere)}


def test_callbacks_that_raise_lose_neither_partitions_nor_the_end(mock: MockCluster) -> None:
    """Poll and close raise a callback's error; assigned partitions are read, and everything is closed."""

    def broken(_: GroupConsumer, partitions: list[TopicPartition]) -> None:
        raise LookupError(len(partitions))

    one = consumer(mock)
    one.subscribe(["t"], on_assign=broken, on_revoke=broken)
    with pytest.raises(LookupError, match="3"):
        read(one, 1)
    assert offsets(read(one, 3 * RECORDS)) == {n: list(range(RECORDS)) for n in range(3)}
    with pytest.raises(LookupError, match="3"):
        one.close()
    with pytest.raises(MembershipError, match="closed"):
        one.poll(0)
    with pytest.raises(RuntimeError, match="closed"):
        one._kafka_azimuth.fetching.client.list_topics(timeout=1)
    one.close()


def test_partitions_that_are_read_again_begin_after_the_last_commit(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An asynchronous commit that waits behind another one is answered before the group's offset is requested."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        found = read(one, 10)
        member = one._kafka_azimuth.membership.member
        assert isinstance(member, GroupMember)
        commit = member.commit

        def slow(*given: Any) -> None:
            time.sleep(0.3)
            commit(*given)

        monkeypatch.setattr(member, "commit", slow)
        one.commit()
        found += read(one, 30)
        one.commit()
        assigned = one.assignment()
        one.unassign()
        one.assign(assigned)
        found += read(one, 3 * RECORDS - 40)
    assert offsets(found) == {number: list(range(RECORDS)) for number in range(3)}


def test_ctrl_c_during_the_last_commit_skips_no_callback(mock: MockCluster) -> None:
    """A slow coordinator makes people press it; the program's own commit in on_revoke may still succeed."""
    told: list[str] = []
    with consumer(mock, **{"enable.auto.commit": True}) as one:
        one.subscribe(["t"], on_revoke=lambda *_: told.append("revoked"))
        read(one, 30)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(one._kafka_azimuth.commits, "commit_later", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                one.unsubscribe()
        assert told == ["revoked"]
        assert not one.assignment()
        one.subscribe(["t"])
        assert read(one, 1)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_unassign_in_a_revocation_leaves_the_commit_of_its_progress(mock: MockCluster) -> None:
    """Programs written for confluent-kafka call it there; what they commit next must be what they have read."""

    def revoked(one: GroupConsumer, partitions: list[TopicPartition]) -> None:
        one.incremental_unassign(partitions)
        one.unassign()
        told.extend(one.commit(asynchronous=False) or [])

    told: list[TopicPartition] = []
    with consumer(mock) as one:
        one.subscribe(["t"], on_revoke=revoked)
        read(one, 3 * RECORDS)
    assert sorted((at.partition, at.offset) for at in told) == [(number, RECORDS) for number in range(3)]


@pytest.mark.slow  # a rebalance of the mock cluster takes 5 s and more
@pytest.mark.parametrize("cooperative", [False, True])
def test_partitions_that_are_not_read_stay_and_move_with_the_group(mock: MockCluster, cooperative: bool) -> None:  # noqa: FBT001 -- a parameter
    """The member owns them: on_revoke lists them, and the next owner reads them from the group's offsets on."""

    def member(agent: str) -> GroupConsumer:
        config = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        config |= {"session.timeout.ms": "6000", "heartbeat.interval.ms": "100", "enable.auto.commit": "false"}
        assignors = [HRWAssignor(agent=agent, cooperative=cooperative)]
        return GroupConsumer(config, assignors=assignors, member={"api_version": (2, 0)})

    revoked: set[int] = set()
    kept: set[int] = set()

    def take(one: GroupConsumer, partitions: list[TopicPartition]) -> None:
        one.unassign()
        kept.update(at.partition for at in partitions)

    def give(_: GroupConsumer, partitions: list[TopicPartition]) -> None:
        revoked.update(at.partition for at in partitions)
        kept.difference_update(revoked)

    with member("a") as first, member("b") as second:
        first.subscribe(["t"], on_assign=take, on_revoke=give)
        until = time.monotonic() + 90
        while len(first.ownership().partitions) < 3 and time.monotonic() < until:
            first.poll(0.05)
        second.subscribe(["t"])
        found: list[Message] = []
        while not kept or not (moved := second.assignment()) or len(found) < RECORDS * len(moved):
            assert time.monotonic() < until
            assert first.poll(0.01) is None
            messages = second.consume(100, 0.05)
            errors = [error.code() for one in messages if (error := one.error()) is not None]
            assert set(errors) <= {KafkaError.INVALID_REQUEST}, (
                errors
            )  # the mock cluster refuses a SyncGroup now and then
            found += [one for one in messages if one.error() is None]
        assert kept == {number for _, number in first.ownership().partitions}
        assert offsets(found) == {at.partition: list(range(RECORDS)) for at in moved}
        assert {at.partition for at in moved} <= revoked
        assert not first.assignment()
        first.assign([TopicPartition("t", number, 40) for number in kept])
        assert offsets(read(first, 10 * len(kept))) == {number: list(range(40, 50)) for number in kept}


def test_what_is_paused_in_on_assign_is_not_delivered_until_it_is_resumed(mock: MockCluster) -> None:
    """A program that is still busy with other records pauses new partitions in its callback."""

    def hold(one: GroupConsumer, partitions: list[TopicPartition]) -> None:
        one.pause(partitions)
        one.resume(partitions[:1])

    with consumer(mock) as one:
        one.subscribe(["t"], on_assign=hold)
        assert offsets(read(one, RECORDS)) == {0: list(range(RECORDS))}
        assert one.poll(0.2) is None
        one.resume(one.assignment())
        assert offsets(read(one, 2 * RECORDS)) == {n: list(range(RECORDS)) for n in (1, 2)}


def test_the_member_id_is_known_in_on_assign(mock: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that begins there sends it, and the member's thread notes it only after the assignment."""
    monkeypatch.setattr(MemberThread, "_look", lambda _: None)
    told: list[str | None] = []
    with consumer(mock) as one:
        one.subscribe(["t"], on_assign=lambda own, _: told.append(own.memberid()))
        read(one, 1)
    assert told
    assert all(told)
