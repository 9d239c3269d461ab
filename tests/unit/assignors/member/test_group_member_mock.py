"""A member against a cluster inside this process: joining, offsets, a broker that goes away."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import UnknownLeaderEpochError
from kafka.net.connection import KafkaConnection

from assignors import GroupMember, HRWAssignor, MembershipError, NotOwnedError
from assignors.clients import OffsetWithMetadata, kafka_python_creation
from assignors.member import group_member
from producer.testing import MockCluster
from tests.waiting import wait_until

pytestmark = pytest.mark.long

T0, T1 = ("t", 0), ("t", 1)


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """Three brokers and a topic of two partitions."""
    with MockCluster() as made:
        made.wait_for_members(500)
        made.create("t", [1, 2])
        yield made


def config(mock: MockCluster, **more: Any) -> dict[str, Any]:
    """Settings for the mock, which speaks the protocol of Kafka 2."""
    return {
        "bootstrap_servers": mock.bootstrap_servers.split(","),
        "group_id": "g",
        "api_version": (2, 0),
        "heartbeat_interval_ms": 100,
        "session_timeout_ms": 6000,
        **more,
    }


def test_a_member_joins_commits_and_ends(mock: MockCluster) -> None:
    """The whole life: assigned partitions are reported, offsets committed and read back, all revoked at the end."""
    told: list[tuple[str, frozenset[tuple[str, int]]]] = []
    member = GroupMember(
        config(mock),
        topics=["t"],
        assignors=[HRWAssignor(agent="a")],
        on_assigned=lambda partitions: told.append(("assigned", partitions)),
        on_revoked=lambda partitions: told.append(("revoked", partitions)),
    )
    with member:
        now = member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 20)
        assert now.generation > 0
        member.commit({T0: 7})
        assert member.committed([T0, T1]) == {T0: 7}
        with pytest.raises(NotOwnedError, match="'u' partition 0"):
            member.commit({("u", 0): 1})
    both = frozenset({T0, T1})
    assert told == [("assigned", both), ("revoked", both)]
    assert member.ownership().partitions == frozenset()
    assert member.failed is None


def test_a_revocation_may_commit(mock: MockCluster) -> None:
    """In on_revoked the partitions are still owned, so commits there are accepted."""
    committed: list[dict[tuple[str, int], int]] = []

    def give_up(partitions: frozenset[tuple[str, int]]) -> None:
        member.commit(dict.fromkeys(partitions, 9))
        committed.append(member.committed(partitions))

    member = GroupMember(config(mock), topics=["t"], assignors=[HRWAssignor(agent="a")], on_revoked=give_up)
    with member:
        member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 20)
    assert committed == [{T0: 9, T1: 9}]


@pytest.mark.parametrize("creates", [False, True])
def test_an_unknown_topic_is_created_only_if_wanted(mock: MockCluster, creates: bool) -> None:  # noqa: FBT001 -- a parameter
    """kafka-python loses the setting on its way to the request, so that a misspelt name would become a topic."""
    wanted = {"allow_auto_create_topics": True} if creates else {}
    with GroupMember({**config(mock), **wanted}, topics=["t", "u"], assignors=[HRWAssignor(agent="a")]) as member:
        member.wait_for(lambda now: now.joined and len(now.partitions) > 1, 20)
    known = AdminClient({"bootstrap.servers": mock.bootstrap_servers, "log_level": 0}).list_topics(timeout=20).topics
    assert ("u" in known) == creates


@pytest.mark.parametrize(
    "given", [{}, {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 500}], ids=["default", "given"]
)
def test_pauses_between_connections_are_librdkafkas(mock: MockCluster, given: dict[str, int]) -> None:
    """kafka-python's grow to 30 s: a member would come back that late to brokers that had all been away."""
    with GroupMember(config(mock, **given), topics=["t"], assignors=[HRWAssignor(agent="a")]) as member:
        used = vars(member)["_GroupMember__consumer"]._manager.config
    wanted = given or {"reconnect_backoff_ms": 100, "reconnect_backoff_max_ms": 10_000}
    assert {name: used[name] for name in wanted} == wanted


def test_brokers_that_go_away_end_nothing(mock: MockCluster) -> None:
    """All brokers are cut off for a while: nothing is raised, and the member commits again when they are back."""
    with GroupMember(config(mock), topics=["t"], assignors=[HRWAssignor(agent="a")]) as member:
        member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 20)
        for broker in mock.racks:
            mock.down(broker)
        for broker in mock.racks:
            mock.up(broker)
        member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 30)
        member.commit({T0: 3}, timeout_s=20)
        assert member.failed is None


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
def test_a_coordinator_that_is_away_for_a_session_costs_the_partitions_if_wanted(
    mock: MockCluster,
    ends: bool,  # noqa: FBT001 -- a parameter
) -> None:
    """As in librdkafka: the partitions are lost once while no broker answers, and come back with a new generation."""
    told: list[tuple[str, int]] = []
    member = GroupMember(
        config(mock),
        topics=["t"],
        assignors=[HRWAssignor(agent="a")],
        on_assigned=lambda partitions: told.append(("assigned", len(partitions))),
        on_lost=lambda partitions: told.append(("lost", len(partitions))),
        ends_with_session=ends,
    )
    with member:
        before = member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 20)
        for broker in mock.racks:
            mock.down(broker)
        answered = member.answered_s
        wait_until(lambda: ("lost", 2) in told if ends else time.monotonic() > answered + 8, 30)
        assert (("lost", 2) in told, len(member.ownership().partitions)) == (ends, 0 if ends else 2)
        if not ends:
            return
        for broker in mock.racks:
            mock.up(broker)
        after = member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 30)
        member.commit({T0: 3}, timeout_s=20)
        assert member.failed is None
    assert told == [("assigned", 2), ("lost", 2), ("assigned", 2)]
    assert after.generation > before.generation


def test_new_credentials_are_those_of_the_next_connection(mock: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rotated password must work without a restart: kafka-python passes its settings on to each new connection."""
    used: list[str | None] = []
    connect: Any = KafkaConnection  # untyped

    def recorded(*arguments: Any, **settings: Any) -> Any:
        used.append(settings["sasl_plain_username"])
        return connect(*arguments, **settings)

    monkeypatch.setattr("kafka.net.manager.KafkaConnection", recorded)
    with GroupMember(config(mock), topics=["t"], assignors=[HRWAssignor(agent="a")]) as member:
        member.wait_joined(20)
        assert set(used) == {None}
        member.set_sasl_credentials("me", "secret")
        before = len(used)
        for change in (mock.down, mock.up):
            for broker in mock.racks:
                change(broker)
        wait_until(lambda: len(used) > before, 30)
        assert set(used[before:]) == {"me"}


def test_assignors_that_were_not_chosen_know_what_is_owned(mock: MockCluster) -> None:
    """The group may change to another one: its claims must be true in the first round (KIP-429)."""
    other = HRWAssignor(agent="a", cooperative=True)
    with GroupMember(config(mock), topics=["t"], assignors=[CooperativeStickyAssignor(), other]) as member:
        now = member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 20)
        claims = other.metadata({"t"})
    assert claims.generation_id == now.generation
    assert [(one.topic, list(one.partitions)) for one in claims.owned_partitions] == [("t", [0, 1])]


def test_a_join_answered_between_two_polls_is_not_asked_again(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kafka-python forgets such an answer: the whole group would rebalance a second time, for nothing."""
    monkeypatch.setattr("assignors.member.membership_thread._PAUSE_S", 1.5)
    plans: list[int] = []

    class Counting(HRWAssignor):
        """An assignor that notes for how many it planned."""

        def assign(self, cluster: Any, members: list[Any]) -> Any:
            plans.append(len(members))
            return super().assign(cluster, members)

    with GroupMember(config(mock), topics=["t"], assignors=[Counting(agent="a")]) as member:
        member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 20)
    assert plans == [1]


def test_a_member_that_is_closed_while_it_starts_does_not_live_on(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads: one connects, the other says that it is over; no thread stays in the group."""
    connecting, go_on = threading.Event(), threading.Event()
    connect = kafka_python_creation.connected

    def slowly(kind: type[KafkaConsumer], settings: dict[str, Any]) -> Any:
        connecting.set()
        assert go_on.wait(20)
        return connect(kind, settings)

    monkeypatch.setattr(group_member, "connected", slowly)
    member = GroupMember(config(mock, group_id="closed-early"), topics=["t"], assignors=[HRWAssignor(agent="a")])
    starting, closing = threading.Thread(target=member.start), threading.Thread(target=member.close)
    starting.start()
    assert connecting.wait(20)
    closing.start()
    go_on.set()
    starting.join(20)
    closing.join(20)
    assert not starting.is_alive()
    assert not closing.is_alive()
    for one in threading.enumerate():
        if one.name.endswith("closed-early"):
            one.join(10)  # the one that runs callbacks ends when the last has returned
            assert not one.is_alive(), one.name
    with pytest.raises(MembershipError, match="closed"):
        member.start()


def test_a_start_that_fails_leaves_no_thread_behind(mock: MockCluster) -> None:
    """A name that no topic can have: a program that tries again would collect threads and connections."""
    before = set(threading.enumerate())
    member = GroupMember(config(mock), topics=["bad topic!"], assignors=[HRWAssignor(agent="a")])
    for _ in range(3):
        with pytest.raises(MembershipError, match="bad topic!"):
            member.start()
    member.close()
    wait_until(lambda: not set(threading.enumerate()) - before)


def test_a_commit_keeps_its_metadata(mock: MockCluster) -> None:
    """Some programs store a state with the offset."""
    with GroupMember(config(mock), topics=["t"], assignors=[HRWAssignor(agent="a")]) as member:
        member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 20)
        member.commit({T0: OffsetWithMetadata(7, "hello"), T1: 3})
        assert member.committed_with_metadata([T0, T1]) == {T0: (7, "hello", -1), T1: (3, "", -1)}


def test_a_commit_out_of_time_raises_the_refusal(mock: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last request has no time for an answer: a timeout would hide why the coordinator refused the others."""
    answers: Iterator[type[Exception]] = iter([UnknownLeaderEpochError])

    async def refuse_once(coordinator: Any, _offsets: object) -> None:
        for answer in answers:
            raise answer
        await coordinator._net.sleep(60)

    monkeypatch.setattr(ConsumerCoordinator, "_send_offset_commit_request", refuse_once)
    with GroupMember(config(mock), topics=["t"], assignors=[HRWAssignor(agent="a")]) as member:
        member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 20)
        with pytest.raises(MembershipError, match="UnknownLeaderEpochError"):
            member.commit({T0: 7}, timeout_s=0.2)


def test_a_pattern_lists_the_topics_before_a_join_and_not_until_its_end(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of thousands of topics each list takes a second, and the result of the join waits for it."""
    lists: list[int] = []
    update = ClusterMetadata.update_metadata

    def updated(cluster: ClusterMetadata, metadata: Any) -> Any:
        lists.append(len(metadata.topics))
        return update(cluster, metadata)  # type: ignore[no-untyped-call]  # as above

    monkeypatch.setattr(ClusterMetadata, "update_metadata", updated)
    mock.wait_for_members(3000)
    with GroupMember(config(mock), pattern="t", assignors=[HRWAssignor(agent="a")]) as member:
        now = member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 30)
        assert now.generation > 0
        assert sum(count > 0 for count in lists) <= 5
        mock.create("other", [1])
        before = len(lists)
        member.rejoin()
        wait_until(lambda: member.ownership().generation > now.generation and member.ownership().joined, 30)
        assert len(lists) > before, "before the next join they are listed again"
