"""A signal interrupts `subscribe`: its member leaves, and the program may subscribe again at once, or close."""

import threading
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from assignors import GroupConsumer
from assignors.consumer.background_calls import Answer
from assignors.member.broker_assigned_member import BrokerAssignedMember
from assignors.member.group_member import GroupMember
from producer.testing import MockCluster
from tests.records import offsets, read
from tests.unit.assignors.conftest import RECORDS, consumer
from tests.waiting import wait_until

KINDS = pytest.mark.parametrize("kind", [GroupMember, BrokerAssignedMember], ids=["classic", "consumer"])


def _made(mock: MockCluster, kind: type) -> GroupConsumer:
    if kind is GroupMember:
        return consumer(mock)
    config = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    return GroupConsumer({**config, "group.protocol": "consumer", "enable.auto.commit": False, "log_level": 0})


def _interrupted(one: GroupConsumer, monkeypatch: pytest.MonkeyPatch, *, assigned: bool) -> None:
    """Subscribe, and raise KeyboardInterrupt when the member has started, or when it has partitions."""
    use = Answer.result

    def result(answer: Answer[Any]) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return use(answer)
        assert answer.wait(20)
        if assigned:
            wait_until(lambda: one._kafka_azimuth.membership.changes, 20)
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(Answer, "result", result)
        with pytest.raises(KeyboardInterrupt):
            one.subscribe(["t"])


@KINDS
@pytest.mark.parametrize("assigned", [False, True], ids=["before its assignment", "after it"])
def test_a_program_subscribes_again_after_an_interruption(
    mock: MockCluster,
    monkeypatch: pytest.MonkeyPatch,
    kind: type,
    assigned: bool,  # noqa: FBT001 -- a case
) -> None:
    """Else one assignor serves two members, and the second one is given what the first one was assigned."""
    given: list[TopicPartition] = []
    running: list[Any] = []
    start, close, most = kind.start, kind.close, list[int]()  # type: ignore[attr-defined]  # of both kinds

    def begin(member: Any) -> Any:
        running.append(member)
        most.append(len(running))
        return start(member)

    def end(member: Any, **how: Any) -> None:
        close(member, **how)
        if member in running:
            running.remove(member)

    monkeypatch.setattr(kind, "start", begin)
    monkeypatch.setattr(kind, "close", end)
    with _made(mock, kind) as one:
        _interrupted(one, monkeypatch, assigned=assigned)
        one.subscribe(["t"], on_assign=lambda _, partitions: given.extend(partitions))
        found = read(one, 3 * RECORDS)
    assert most == [1, 1]
    assert offsets(found) == {number: list(range(RECORDS)) for number in range(3)}
    assert sorted(one.partition for one in given) == [0, 1, 2]


@KINDS
def test_the_member_of_an_interrupted_join_waits_for_no_callback(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    """The program handles none of its changes, and it would keep its partitions for max.poll.interval.ms."""
    ended, close = threading.Event(), kind.close  # type: ignore[attr-defined]  # of both kinds

    def end(member: Any, **how: Any) -> None:
        close(member, **how)
        ended.set()

    monkeypatch.setattr(kind, "close", end)
    with _made(mock, kind) as one:
        _interrupted(one, monkeypatch, assigned=True)
        assert ended.wait(20)
        assert not one.assignment()
