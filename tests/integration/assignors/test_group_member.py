"""A member of a real group: joins, keeps, gives up, and what the group does to it."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from kafka.coordinator.assignors.range import RangePartitionAssignor

from assignors import FencedError, GroupMember, HRWAssignor, MembershipError, NotOwnedError, Ownership
from spark_sink.demo.cluster import Cluster
from tests.integration.assignors.conftest import METADATA_S, Topics
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


def member(topics: Topics, pattern: str | None = None, **more: Any) -> GroupMember:
    """A member under the test's pattern."""
    config = topics.config(**more.pop("config", {}))
    assignors = more.pop("assignors", None) or [HRWAssignor(agent=more.pop("agent", None))]
    return GroupMember(config, pattern=pattern or topics.pattern, assignors=assignors, **more)


def holding(count: int) -> Callable[[Ownership], bool]:
    """Joined, with so many partitions."""
    return lambda now: now.joined and len(now.partitions) == count


def settled(member: GroupMember) -> Ownership:
    """What is held once the leader has looked at the topics twice more and asked for nothing.

    Right after topics are made, brokers may tell different things of them, and each change is a new generation.
    """
    seen, since = member.ownership(), time.monotonic()

    def still() -> bool:
        nonlocal seen, since
        if (now := member.ownership()) != seen:
            seen, since = now, time.monotonic()
        return seen.joined and time.monotonic() - since > 2 * METADATA_S

    wait_until(still)
    return seen


def test_partitions_are_given_up_before_they_go_on(topics: Topics) -> None:
    """What on_revoked commits is what the next owner finds, and a commit after it is refused."""
    names = topics.make("a", "b", partitions=4)
    revoked = threading.Event()
    refused: list[Exception] = []
    kept: dict[str, Any] = {}

    def give_up(partitions: frozenset[tuple[str, int]]) -> None:
        kept["first"].commit(dict.fromkeys(partitions, 7))
        revoked.set()

    with member(topics, on_revoked=give_up) as first:
        kept["first"] = first
        first.wait_for(holding(8), 40)
        with member(topics) as second:
            theirs = second.wait_for(holding(4), 40).partitions
            assert revoked.is_set()
            assert second.committed(theirs) == dict.fromkeys(theirs, 7)
            try:
                first.commit(dict.fromkeys(theirs, 3))
            except NotOwnedError as error:
                refused.append(error)
            assert len(refused) == 1
            mine = first.wait_for(holding(4), 40)
            assert not mine.partitions & theirs
            assert mine.generation == second.ownership().generation
        assert len(first.wait_for(holding(8), 40).partitions) == len(names) * 4


def test_questions_answer_for_all_partitions_at_once(topics: Topics) -> None:
    """Ends, beginnings and times, for partitions owned or not; what does not exist is left out."""
    (name,) = topics.make("a", partitions=3)
    topics.fill([name], 5)
    keys = [(name, n) for n in range(3)]
    with member(topics) as one:
        one.wait_for(holding(3), 40)
        assert one.end_offsets(keys) == dict.fromkeys(keys, 5)
        assert one.beginning_offsets(keys) == dict.fromkeys(keys, 0)
        assert one.offsets_for_times(dict.fromkeys(keys, 0)) == dict.fromkeys(keys, 0)
        assert one.committed(keys) == {}
        missing = ("no-such-topic", 0)
        assert one.end_offsets([*keys, missing], timeout_s=1) == dict.fromkeys(keys, 5)
        with pytest.raises(NotOwnedError, match="no-such-topic"):
            one.commit({keys[0]: 1, missing: 1})
        assert one.committed(keys) == {}


def test_topics_come_and_go_under_a_pattern(topics: Topics) -> None:
    """A pattern may match nothing yet; a deleted topic is released and breaks nothing."""
    with member(topics) as one:
        one.wait_for(holding(0), 40)
        first, second = topics.make("a", "b", partitions=2)
        one.wait_for(holding(4), 40)
        topics.delete(first)
        left = one.wait_for(holding(2), 40)
        assert left.partitions == {(second, 0), (second, 1)}


@pytest.mark.parametrize(
    "cooperative",
    [pytest.param(False, id="eager", marks=pytest.mark.slow), pytest.param(True, id="cooperative")],
)
def test_who_sees_a_topic_first_joins_and_waits_for_the_others(topics: Topics, cooperative: bool) -> None:  # noqa: FBT001 - a parameter
    """It has sent its topics and no longer needs the rebalance: it still takes part, and stays a member."""
    topics.make("a", partitions=4)
    slow = {"metadata_max_age_ms": 60_000, "heartbeat_interval_ms": 1500}

    def one(agent: str, config: dict[str, Any]) -> GroupMember:
        return member(topics, config=config, assignors=[HRWAssignor(agent=agent, cooperative=cooperative)])

    with one("agent-0", slow) as leader:
        leader.wait_for(holding(4), 40)
        with one("agent-1", {"metadata_max_age_ms": 300}) as first:
            both = (leader, first)
            for other in both:
                other.wait_for(holding(2), 40)
            topics.make("b", partitions=4)
            for other in both:
                other.wait_for(holding(4), 40)
            assert leader.ownership().generation == first.ownership().generation


def test_whole_names_match(topics: Topics) -> None:
    """A pattern means whole names, as Spark's own source has it, not their beginning."""
    name, _ = topics.make("a", "ab", partitions=1)
    with member(topics, pattern=f"{topics.prefix}\\.a") as one:
        assert one.wait_for(holding(1), 40).partitions == {(name, 0)}


def test_a_topic_named_before_it_exists_is_not_made(topics: Topics) -> None:
    """Asking for a topic does not create it; when it comes, it is read."""
    name = f"{topics.prefix}.late"
    with GroupMember(topics.config(), topics=[name], assignors=[HRWAssignor()]) as one:
        one.wait_for(holding(0), 40)
        assert name not in topics.admin.list_topics(timeout=10).topics
        topics.make("late", partitions=2)
        one.wait_for(holding(2), 40)


def test_a_second_instance_of_a_static_id_fences_the_first(topics: Topics) -> None:
    """Two processes with one group.instance.id: the older one learns it, and neither commits for the other."""
    topics.make("a", partitions=2)
    lost = threading.Event()
    config = {"group_instance_id": "agent-1"}
    with member(topics, config=config, on_lost=lambda _: lost.set()) as old:
        held = old.wait_for(holding(2), 40).partitions
        with member(topics, config=config) as new:
            new.wait_for(holding(2), 40)
            wait_until(lambda: old.failed is not None)
            assert lost.wait(10)
            assert old.ownership().partitions == frozenset()
            with pytest.raises(FencedError, match="ended"):
                old.commit(dict.fromkeys(held, 1))
            new.commit(dict.fromkeys(held, 2))


def test_a_static_member_comes_back_to_its_partitions(topics: Topics) -> None:
    """Within the session time-out no other member moves, and the generation stays (KIP-345)."""
    topics.make("a", partitions=4)
    # Long enough that a busy machine does not end the session between close and start.
    first, second = ({"group_instance_id": one, "session_timeout_ms": 30_000} for one in ("agent-1", "agent-2"))
    with member(topics, config=first) as stays:
        back = member(topics, config=second).start()
        back.wait_for(holding(2), 40)
        before = settled(back)
        back.close()
        with member(topics, config=second) as again:
            after = again.wait_for(holding(2), 40)
            assert (after.partitions, after.generation) == (before.partitions, before.generation)
            assert stays.ownership().generation == before.generation


def test_groups_that_do_not_fit_are_a_named_failure(topics: Topics) -> None:
    """A member that shares no assignor with the group fails instead of trying for ever."""
    topics.make("a", partitions=2)
    with member(topics) as one:
        one.wait_for(holding(2), 40)
        with member(topics, assignors=[RangePartitionAssignor()]) as other:
            wait_until(lambda: other.failed is not None)
            with pytest.raises(MembershipError, match="InconsistentGroupProtocol"):
                other.wait_joined(1)
        assert one.ownership().joined


def test_a_callback_that_hangs_holds_the_group_no_longer_than_allowed(topics: Topics) -> None:
    """After the time-out the group continues, and the late commit is rejected."""
    topics.make("a", partitions=2)
    go, finished = threading.Event(), threading.Event()
    told: list[str] = []
    kept: dict[str, Any] = {}

    def hang(partitions: frozenset[tuple[str, int]]) -> None:
        go.wait(60)
        try:
            kept["first"].commit(dict.fromkeys(partitions, 9))
        except MembershipError as error:
            told.append(str(error))
        finished.set()

    with member(topics, on_revoked=hang, callback_timeout_s=1) as first:
        kept["first"] = first
        first.wait_for(holding(2), 40)
        with member(topics) as second:
            second.wait_for(holding(1), 40)
            go.set()
            assert finished.wait(20)
            assert len(told) == 1


@pytest.mark.slow
def test_a_member_outlives_its_coordinator(topics: Topics, cluster: Cluster) -> None:
    """The broker that coordinates the group dies: the member keeps its partitions and commits through the next one."""
    topics.make("a", partitions=2, replication=3)
    with member(topics) as one:
        held = one.wait_for(holding(2), 40).partitions
        coordinator = topics.admin.describe_consumer_groups([topics.group])[topics.group].result(10).coordinator
        assert coordinator is not None
        cluster.kill(coordinator.id)
        try:
            one.commit(dict.fromkeys(held, 4), timeout_s=40)
            assert one.committed(held, timeout_s=40) == dict.fromkeys(held, 4)
            assert one.wait_for(holding(2), 40).partitions == held
        finally:
            cluster.start(coordinator.id)
        assert topics.committed(held) == dict.fromkeys(held, 4)
