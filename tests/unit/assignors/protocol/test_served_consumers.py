"""An assignor and the consumer that it serves: claims, copies, a second consumer, a fork."""

import copy
import pickle
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.base import Generation
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.util import WeakMethod

from assignors import HRWAssignor, MembershipError, ShuffledRoundRobinAssignor
from tests.unit.assignors.groups import Cluster, joined, read
from tests.unit.assignors.member.forks import in_child
from tests.waiting import wait_until


def joining(*assignors: Any, group: str = "g", owned: list[int] | None = None, generation: int = -1) -> Any:
    """A coordinator of kafka-python that is about to join with these, and reads these partitions of the topic."""
    coordinator: Any = object.__new__(ConsumerCoordinator)
    coordinator._assignors = {one.name: one for one in assignors}
    partitions = {TopicPartition("t", number) for number in owned or []}
    coordinator._subscription = SimpleNamespace(subscription={"t"}, assigned_partitions=lambda: partitions)
    coordinator._generation = Generation(generation, "me", None)
    coordinator._heartbeat_closed = False
    coordinator.config = {"group_id": group}
    return coordinator


def claims(coordinator: Any, name: str) -> tuple[list[int], int]:
    """What it claims of the topic under an assignor of this name, and since which generation."""
    said = dict(coordinator.group_protocols())[name]
    return [number for one in said.owned_partitions for number in one.partitions], said.generation_id


@pytest.mark.parametrize("cooperative", [False, True])
def test_one_instance_in_two_consumers_is_refused(*, cooperative: bool) -> None:
    """Both would claim the same: a cooperative leader withholds it, and half of the partitions have no owner."""
    assignor = HRWAssignor(agent="a", cooperative=cooperative)
    first, second = joining(assignor), joining(assignor, group="other")
    for _ in range(2):
        first.group_protocols()
    with pytest.raises(MembershipError, match=r"two consumers, of groups 'g' and 'other'"):
        second.group_protocols()
    assert joining(HRWAssignor(agent="a")).group_protocols()


def test_an_instance_of_a_closed_consumer_serves_the_next_one() -> None:
    """A program that makes its consumer again may keep the assignor; the claims of the old consumer are dropped."""
    assignor = HRWAssignor(agent="a")
    first: Any = joining(assignor)
    first.group_protocols()
    assignor.on_assignment(ConsumerProtocolAssignment(0, [("t", [0])], b""), 7)
    first._heartbeat_closed = True
    [(_, said)] = joining(assignor).group_protocols()
    assert (said.owned_partitions, said.generation_id) == ([], -1)
    gone: Any = joining(assignor)
    first._heartbeat_closed = False
    del first
    assert gone.group_protocols()


@pytest.mark.parametrize("kind", [HRWAssignor, ShuffledRoundRobinAssignor])
@pytest.mark.parametrize("cooperative", [False, True])
def test_a_join_for_changed_topics_is_needed_until_its_answer_is_used(kind: Any, *, cooperative: bool) -> None:
    """kafka-python uses the answer only while the join is needed, and sends no heartbeats until then.

    A member whose poll ended before the answer would lose its place after a session without noticing, and read its
    partitions beside their new owners for good.
    """
    coordinator = joining(kind(agent="a", cooperative=cooperative))
    coordinator._subscription.partitions_auto_assigned = lambda: True
    coordinator.config["api_version"] = (2, 3)
    coordinator.rejoin_needed = False
    coordinator._assignment_snapshot = coordinator._metadata_snapshot = None  # of a member that does not lead
    coordinator._joined_subscription = {"other"}
    assert coordinator.need_rejoin()
    coordinator.group_protocols()  # the last step before JoinGroup is sent
    assert coordinator.need_rejoin()


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301 -- its own bytes
}


class Slotted(HRWAssignor):
    """A subclass with an attribute that is not in the instance's dictionary."""

    __slots__ = ("mine",)


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("kind", [HRWAssignor, ShuffledRoundRobinAssignor, Slotted])
def test_a_copy_serves_another_consumer(kind: Any, how: str) -> None:
    """Programs copy their configuration for each consumer; kafka-python's own assignors allow that."""
    first = kind(agent="a", cooperative=True, overrides={"t": "a"}, weights={"t": 2.0})
    if kind is Slotted:
        first.mine = "kept"
    used = joining(first)
    used.group_protocols()
    first.on_assignment(ConsumerProtocolAssignment(0, [("t", [0])], b""), 7)
    first.assign(Cluster({"t": 2}), [joined(kind(agent="a"), "m", {"t"}, "a")])
    second = COPIES[how](first)
    assert claims(joining(second), second.name) == ([], -1)
    assert claims(used, first.name) == ([0], 7)
    assert (second.name, second.last_plan) == (first.name, None)
    assert second.metadata({"t"}).user_data == first.metadata({"t"}).user_data
    if kind is Slotted:
        assert second.mine == "kept"


def watches() -> int:
    """How many leaders watch their workers."""
    return len([one for one in threading.enumerate() if one.name == "workers-watch"])


def leading(assignor: HRWAssignor) -> Any:
    """A coordinator whose assignor has planned for the group."""
    coordinator = joining(assignor)
    cluster = Cluster({"t": 2})
    cluster._listeners.add(WeakMethod(coordinator.group_protocols))
    assert read(assignor.assign(cluster, [joined(HRWAssignor(), "m", {"t"}, "a")]))
    return coordinator


def test_a_copy_of_a_leader_does_not_share_its_watch() -> None:
    """The watch belongs to the original's consumer, and its thread cannot be copied."""
    before = watches()
    first = HRWAssignor(workers=lambda: 1, agent="a", watch_interval_s=60)
    used = leading(first)
    assert used is not None
    copy.copy(first).stop_watch()
    assert watches() == before + 1
    first.stop_watch()


def test_a_child_may_use_the_assignor_of_its_parent() -> None:
    """The parent's consumer does not run there, so its claims are not the child's."""
    assignor = HRWAssignor(agent="a")
    parent = joining(assignor)
    parent.group_protocols()
    assignor.on_assignment(ConsumerProtocolAssignment(0, [("t", [0])], b""), 7)
    assert in_child(lambda: claims(joining(assignor), "hrw")) == "([], -1)"
    assert claims(parent, "hrw") == ([0], 7)


@pytest.mark.parametrize(
    ("known", "reads", "generation", "claimed"),
    [
        pytest.param(None, [0, 2], 5, ([0, 2], 5), id="all under another assignor"),
        pytest.param(([0, 1], 3), [1, 2], 5, ([1, 2], 5), id="other partitions since then"),
        pytest.param(([0, 1], 3), [0, 1], 5, ([0, 1], 5), id="the same ones in a newer generation"),
        pytest.param(([0, 1], 3), [0, 1], -1, ([0, 1], 3), id="out of the group"),
        pytest.param(([0, 1], 3), [], -1, ([0, 1], 3), id="lost"),
    ],
)
def test_a_member_claims_what_its_consumer_reads(
    known: tuple[list[int], int] | None, reads: list[int], generation: int, claimed: tuple[list[int], int]
) -> None:
    """kafka-python passes an assignment only to the assignor that the group has chosen."""
    assignor = HRWAssignor(agent="a", cooperative=True)
    if known is not None:
        assignor.on_assignment(ConsumerProtocolAssignment(0, [("t", known[0])], b""), known[1])
    coordinator = joining(assignor, CooperativeStickyAssignor(), owned=reads, generation=generation)
    assert claims(coordinator, assignor.name) == claimed


def test_assignors_of_kafka_python_learn_what_this_one_has_assigned() -> None:
    """They claim it if the group goes back to them; else their leader would give it to another member."""
    assignor, before = HRWAssignor(agent="a", cooperative=True), CooperativeStickyAssignor()
    coordinator = joining(assignor, before)
    coordinator.group_protocols()
    assignor.on_assignment(ConsumerProtocolAssignment(0, [("t", [0, 1])], b""), 7)
    assert claims(coordinator, before.name)[0] == [0, 1]


def test_a_leader_that_is_closed_stops_watching() -> None:
    """A program may keep the closed consumer; its function must not be called for it forever."""
    before = watches()
    calls: list[None] = []

    def workers() -> int:
        calls.append(None)
        return 1

    coordinator = leading(HRWAssignor(workers=workers, agent="a", watch_interval_s=0.01))
    wait_until(lambda: len(calls) > 3)
    coordinator._heartbeat_closed = True
    wait_until(lambda: watches() == before)
