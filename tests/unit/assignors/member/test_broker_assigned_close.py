"""The end of a member whose coordinator does not answer; librdkafka is a double that then never returns."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as KafkaPartition

from assignors import MembershipError
from assignors.consumer.consumer_errors import consumer_error
from assignors.member import broker_assigned_thread
from assignors.member.broker_assigned_member import BrokerAssignedMember
from tests.waiting import wait_until

ONE = frozenset({("t", 0)})


class SilentClient:
    """A client of one partition that waits in `close`, or in the commits of on_revoked, until `answer` is set."""

    def __init__(self, _config: object) -> None:
        self.answer = threading.Event()
        self.callbacks: dict[str, Any] = {}
        self.waits_in = "close"

    def list_topics(self, timeout: float) -> None:
        """There are brokers."""

    def subscribe(self, _topics: object, **callbacks: Any) -> None:
        """Keep the callbacks."""
        self.callbacks = callbacks

    def poll(self, timeout_s: float) -> None:
        """Assign the partition once."""
        if (on_assign := self.callbacks.pop("on_assign", None)) is not None:
            on_assign(self, [KafkaPartition("t", 0)])
        self.answer.wait(timeout_s / 10)

    def close(self) -> None:
        """Wait, or revoke."""
        if self.waits_in == "close":
            self.answer.wait()
        self.callbacks["on_revoke"](self, [KafkaPartition("t", 0)])

    def commit(self, **_offsets: object) -> list[KafkaPartition]:
        """Wait."""
        self.answer.wait()
        return []

    def consumer_group_metadata(self) -> bytes:
        """Epoch 1."""
        return b"CGMDv2:" + (1).to_bytes(4, "little")

    def memberid(self) -> str:
        """Any."""
        return "m"

    def incremental_assign(self, _partitions: object) -> None:
        """Nothing to do."""

    pause = incremental_unassign = incremental_assign


@pytest.fixture
def told() -> list[tuple[str, frozenset[tuple[str, int]]]]:
    """The calls of callbacks."""
    return []


@pytest.fixture
def member(
    told: list[tuple[str, frozenset[tuple[str, int]]]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[BrokerAssignedMember]:
    """A member that owns the partition; its commit in on_revoked has a limit of its own."""
    monkeypatch.setattr(broker_assigned_thread, "Consumer", SilentClient)
    monkeypatch.setattr(broker_assigned_thread, "_CLOSING_S", 0.1)
    monkeypatch.setattr(broker_assigned_thread, "_LEAVING_S", 0.1)

    def give_up(partitions: frozenset[tuple[str, int]]) -> None:
        told.append(("revoked", partitions))
        made.commit(dict.fromkeys(partitions, 1), timeout_s=0.1)

    made = BrokerAssignedMember(
        {"group.id": "g"},
        topics=["t"],
        on_revoked=give_up,
        on_lost=lambda partitions: told.append(("lost", partitions)),
    ).start()
    made.wait_joined(20)
    yield made
    client: Any = vars(made)["_BrokerAssignedMember__thread"].consumer
    client.answer.set()
    vars(made)["_BrokerAssignedMember__thread"]._thread.join()


def test_a_silent_close_loses_the_partitions(member: BrokerAssignedMember, told: list[object]) -> None:
    """The program hears once that it has none, also when librdkafka revokes them later."""
    member.close()
    assert told == [("lost", ONE)]
    assert member.ownership().partitions == frozenset()
    client: Any = vars(member)["_BrokerAssignedMember__thread"].consumer
    client.answer.set()
    vars(member)["_BrokerAssignedMember__thread"]._thread.join()
    assert told == [("lost", ONE)]


def test_partitions_that_are_revoked_while_close_leaves_the_member_are_reported_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The coordinator may answer in this moment: neither on_revoked nor on_lost was called."""
    monkeypatch.setattr(broker_assigned_thread, "Consumer", SilentClient)
    monkeypatch.setattr(broker_assigned_thread, "_CLOSING_S", 0.1)
    monkeypatch.setattr(broker_assigned_thread, "_LEAVING_S", 0.1)
    told: list[str] = []

    def answer() -> None:
        if threading.current_thread().name == "closing":
            client: Any = vars(made)["_BrokerAssignedMember__thread"].consumer
            client.answer.set()
            vars(made)["_BrokerAssignedMember__thread"]._thread.join(20)

    made = BrokerAssignedMember(
        {"group.id": "g"},
        topics=["t"],
        on_revoked=lambda _: told.append("revoked"),
        on_lost=lambda _: told.append("lost"),
        on_change=answer,
    ).start()
    made.wait_joined(20)
    closing = threading.Thread(target=made.close, name="closing")
    closing.start()
    closing.join()
    assert told == ["revoked"]


def test_a_callback_that_never_returns_does_not_keep_close_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """on_lost comes after it; the error says why the end is not a usual one."""
    monkeypatch.setattr(broker_assigned_thread, "Consumer", SilentClient)
    monkeypatch.setattr(broker_assigned_thread, "_CLOSING_S", 0.1)
    monkeypatch.setattr(broker_assigned_thread, "_LEAVING_S", 0.1)
    returns = threading.Event()
    made = BrokerAssignedMember(
        {"group.id": "g", "max.poll.interval.ms": 100},
        topics=["t"],
        on_assigned=lambda _: returns.wait(),
        on_lost=lambda _: None,
    ).start()
    made.wait_joined(20)
    client: Any = vars(made)["_BrokerAssignedMember__thread"].consumer
    raised: list[BaseException] = []

    def close() -> None:
        try:
            made.close()
        except MembershipError as error:
            raised.append(error)

    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    closing.join(20)
    assert ["has not returned" in str(one) for one in raised] == [True]
    client.answer.set()
    returns.set()
    vars(made)["_BrokerAssignedMember__thread"]._thread.join()


def test_partitions_that_a_failed_close_has_not_revoked_are_lost(
    member: BrokerAssignedMember, told: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program would take them for its own; and close(), if it had waited for on_lost, would wait for ever."""

    def fail() -> None:
        raise RuntimeError

    monkeypatch.setattr(vars(member)["_BrokerAssignedMember__thread"].consumer, "close", fail)
    member.close()
    wait_until(lambda: told == [("lost", ONE)], 20)


def test_a_silent_commit_in_on_revoked_does_not_keep_close(member: BrokerAssignedMember, told: list[object]) -> None:
    """A commit of librdkafka has no time limit: the callback has returned, the member's thread has not."""
    client: Any = vars(member)["_BrokerAssignedMember__thread"].consumer
    client.waits_in = "commit"
    member.close()
    assert told == [("revoked", ONE)]


def test_a_closing_member_asks_for_no_offsets(member: BrokerAssignedMember) -> None:
    """Librdkafka would not answer: close() of a consumer with a new assignment took 5 s."""
    member.close()
    with pytest.raises(MembershipError, match="its member closes") as raised:
        member.committed(ONE)
    assert consumer_error(raised.value).code() == KafkaError._TIMED_OUT
