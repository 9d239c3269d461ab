"""A program forks while its member is in a group: the child's calls are refused, and the parent's member continues."""

import os
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from assignors import BrokerAssignedMember, GroupMember, HRWAssignor
from producer.testing import MockCluster
from tests.unit.assignors.member.forks import in_child, wait_for_child
from tests.waiting import wait_until

T0 = ("t", 0)
REFUSED = "MembershipError: this member belongs to process "

pytestmark = [pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"), pytest.mark.long]


@pytest.fixture(scope="module")
def mock() -> Iterator[MockCluster]:
    """Three brokers and a topic of two partitions."""
    with MockCluster() as made:
        made.wait_for_members(50)
        made.create("t", [1, 2])
        yield made


def classic(mock: MockCluster, **callbacks: Any) -> GroupMember:
    """A member in the classic protocol."""
    config = {
        "bootstrap_servers": mock.bootstrap_servers.split(","),
        "group_id": f"forks-{uuid.uuid4()}",
        "api_version": (2, 0),
        "heartbeat_interval_ms": 100,
        "session_timeout_ms": 6000,
    }
    return GroupMember(config, topics=["t"], assignors=[HRWAssignor(agent="a")], **callbacks)


def broker_assigned(mock: MockCluster, **callbacks: Any) -> BrokerAssignedMember:
    """A member with group.protocol=consumer."""
    config = {
        "bootstrap.servers": mock.bootstrap_servers,
        "group.id": f"forks-{uuid.uuid4()}",
        "group.protocol": "consumer",
        "log_level": 0,
    }
    return BrokerAssignedMember(config, topics=["t"], **callbacks)


MEMBERS = [classic, broker_assigned]
CALLS: dict[str, Callable[[Any], object]] = {
    "start": lambda one: one.start(),
    "commit": lambda one: one.commit({T0: 7}),
    "committed": lambda one: one.committed([T0]),
    "wait_joined": lambda one: one.wait_joined(1),
}


@pytest.mark.parametrize("make", MEMBERS)
def test_calls_of_a_child_are_refused_and_the_parent_stays_a_member(make: Any, mock: MockCluster) -> None:
    """No thread of the member runs in the child: a call would wait forever."""
    with make(mock) as member:
        wait_until(lambda: len(member.ownership().partitions) == 2)
        before = member.ownership()
        found = {name: in_child(partial(call, member)) for name, call in CALLS.items()}
        assert [name for name, said in found.items() if not said.startswith(REFUSED)] == []
        assert in_child(lambda: member.ownership().partitions) == "frozenset()"
        assert in_child(lambda: str(member.failed)).startswith(REFUSED.removeprefix("MembershipError: "))
        assert in_child(lambda: (member.ends, member.close())) == "(True, None)"
        member.commit({T0: 5})
        assert member.committed([T0]) == {T0: 5}
        assert (member.ownership().generation, member.ends) == (before.generation, False)


def test_a_classic_member_refuses_its_other_calls_in_a_child(mock: MockCluster) -> None:
    """Also those that only this kind has."""
    with classic(mock) as member:
        wait_until(lambda: len(member.ownership().partitions) == 2)
        for call in (
            lambda: member.end_offsets([T0]),
            lambda: member.beginning_offsets([T0]),
            lambda: member.offsets_for_times({T0: 0}),
            member.rejoin,
        ):
            assert in_child(call).startswith(REFUSED)


def test_a_member_may_be_started_in_a_child(mock: MockCluster) -> None:
    """Servers create their objects before they fork their workers."""
    member = classic(mock)

    def run() -> int:
        with member:
            return len(member.wait_for(lambda now: len(now.partitions) == 2, 20).partitions)

    assert in_child(run) == "2"
    assert run() == 2


@pytest.mark.parametrize("make", MEMBERS)
def test_a_child_that_a_callback_forks_ends_with_the_callback(make: Any, mock: MockCluster) -> None:
    """It has only the callbacks' thread, which would wait for callbacks forever."""
    children: list[int] = []

    def fork(_: object) -> None:
        if not children:
            children.append(os.fork())
            if not children[0]:
                raise SystemExit

    with make(mock, on_assigned=fork) as member:
        wait_until(lambda: bool(children) and member.ownership().joined)
        assert wait_for_child(children[0])
        member.commit({T0: 5})
