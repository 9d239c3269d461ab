"""Members that are stopped for longer than their session and resume: they lose their partitions and report it."""

import pytest

from tests.integration.assignors.conftest import Topics
from tests.integration.assignors.members import Process, Start, overlaps, owned_twice, settled
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"]),
]

PATIENCE_S = 60.0
PATIENT_MS = 60_000


def test_a_member_stopped_while_its_join_is_held_open_loses_what_it_had(topics: Topics, start: Start) -> None:
    """The answer to its join is there when it comes back, but the group has gone on: it lost all it had.

    The other member stands still too, with a longer session, so that the rebalance that a third one asks for stays
    open until the first has joined and stands still.
    """
    (name,) = topics.make("a", partitions=12)
    everything = {(name, n) for n in range(12)}
    stopped, holder = start("agent-0"), start("agent-1", session_timeout_ms=PATIENT_MS)
    wait_until(lambda: settled([stopped, holder], everything), PATIENCE_S)
    holder.pause()
    third = start("agent-2")
    wait_until(lambda: stopped.last("owns", "joins") == "joins", PATIENCE_S)
    stopped.pause()
    holder.resume()
    wait_until(lambda: settled([holder, third], everything), PATIENCE_S)
    stopped.resume()
    wait_until(lambda: settled([stopped, holder, third], everything), PATIENCE_S)
    nothing_twice([stopped, holder, third])


def test_a_leader_stopped_while_it_plans_is_done_without(topics: Topics, start: Start) -> None:
    """Others wait for its plan no longer than its session; its own, sent when it comes back, is refused."""
    leader, others, everything = planning(topics, start)
    leader.pause()
    wait_until(lambda: settled(others, everything), PATIENCE_S)
    leader.resume()
    wait_until(lambda: settled([leader, *others], everything), PATIENCE_S)
    nothing_twice([leader, *others])


def test_a_leader_killed_while_it_plans_is_done_without(topics: Topics, start: Start) -> None:
    """SIGKILL between JoinGroup and SyncGroup: the others rejoin when its session is over."""
    leader, others, everything = planning(topics, start)
    leader.kill()
    wait_until(lambda: settled(others, everything), PATIENCE_S)
    nothing_twice([leader, *others])


def test_a_member_stopped_in_peace_comes_back(topics: Topics, start: Start) -> None:
    """It learns from its heartbeat that it lost all it had."""
    (name,) = topics.make("a", partitions=12)
    everything = {(name, n) for n in range(12)}
    one, two = start("agent-0"), start("agent-1")
    wait_until(lambda: settled([one, two], everything), PATIENCE_S)
    one.pause()
    wait_until(lambda: settled([two], everything), PATIENCE_S)
    one.resume()
    wait_until(lambda: settled([one, two], everything), PATIENCE_S)
    nothing_twice([one, two])


def planning(topics: Topics, start: Start) -> tuple[Process, list[Process], set[tuple[str, int]]]:
    """A leader in the middle of its plan, the two that joined it, and the partitions that are there."""
    (name,) = topics.make("a", partitions=12)
    everything = {(name, n) for n in range(12)}
    leader = start("agent-0", plan_s=1.0)
    wait_until(lambda: settled([leader], everything), PATIENCE_S)
    others = [start("agent-1"), start("agent-2")]
    wait_until(lambda: leader.last("owns", "plans") == "plans", PATIENCE_S)
    return leader, others, everything


def nothing_twice(processes: list[Process]) -> None:
    """No partition had two owners in one generation or at one time, and no member raised."""
    assert owned_twice(processes) == []
    assert overlaps(processes) == []
    assert not any("Traceback" in one.errors() for one in processes)
