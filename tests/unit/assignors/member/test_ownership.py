"""The partitions of a member, as a value and shared by threads."""

import threading

from assignors import Ownership
from assignors.member.ownership import OwnershipCell

A, B, C = ("t", 0), ("t", 1), ("u", 0)


def test_version_grows_exactly_on_a_change() -> None:
    """A comparison with a stored version shows whether there was a change."""
    now = Ownership().plus([A, B], 1)
    assert (now.version, now.partitions) == (1, frozenset({A, B}))
    assert now.plus([A], 1) is now
    assert now.minus([C]) is now
    assert now.standing(generation=1, member_id="", joined=True).minus([A]).joined is False
    assert now.minus([A]).version == 2
    assert now.standing(generation=3, member_id="m", joined=True).version == 2


def test_outside_the_group_nothing_is_held() -> None:
    """A lost membership takes partitions and generation, and keeps the version growing."""
    now = Ownership().plus([A], 3).standing(generation=3, member_id="m", joined=True).outside()
    assert (now.partitions, now.generation, now.joined, now.version) == (frozenset(), -1, False, 3)


def test_waiting_ends_with_the_value_that_fits() -> None:
    """A thread that waits sees the change of another one."""
    cell = OwnershipCell()
    change = threading.Timer(0.05, lambda: cell.change(lambda now: now.plus([A], 1)))
    change.start()
    found = cell.wait(lambda now: A in now.partitions, 10)
    change.join()
    assert found is not None
    assert found.partitions == {A}
    assert cell.wait(lambda now: B in now.partitions, 0.01) is None


def test_the_first_failure_stays_and_ends_all_waiting() -> None:
    """A fatal error reaches waiting callers immediately, not after the timeout."""
    cell = OwnershipCell()
    cell.change(lambda now: now.plus([A], 1))
    first = ValueError("first")
    cell.fail(first)
    cell.fail(ValueError("second"))
    assert cell.failed is first
    assert cell.wait(lambda now: now.joined, 60) is None
    assert cell.value.partitions == frozenset()
