"""Rebalances between two threads: in order, each handled once, and no endless wait."""

import threading

import pytest

from assignors.consumer.rebalance_events import Kind, Rebalances

A, B = frozenset({("t", 0)}), frozenset({("t", 1)})


def test_changes_are_taken_in_their_order() -> None:
    """A gain that comes before a loss is seen before it."""
    changes = Rebalances(0)
    changes.assigned(A)
    changes.lost(A)
    changes.assigned(B)
    seen = []
    while (change := changes.first()) is not None:
        assert changes.first() is change
        seen.append((change.kind, change.partitions))
        changes.remove_first()
    assert seen == [(Kind.ASSIGNED, A), (Kind.LOST, A), (Kind.ASSIGNED, B)]
    assert not changes


@pytest.mark.parametrize("kind", [Kind.REVOKED, Kind.LOST])
def test_what_is_given_up_or_lost_waits_until_the_program_knows(kind: Kind) -> None:
    """The member continues only after the program has handled the loss, because it may get the partitions again."""
    changes = Rebalances(60)
    waiting = threading.Thread(target=changes.revoked if kind is Kind.REVOKED else changes.lost, args=(A,))
    waiting.start()
    while (change := changes.first()) is None:
        pass
    assert change.begin()
    assert change.begin()  # repeated after an interruption
    assert waiting.is_alive()
    change.end()
    waiting.join(10)
    assert not waiting.is_alive()


def test_who_comes_too_late_is_told() -> None:
    """After the timeout the partitions belong to another member: the revocation has become a loss."""
    changes = Rebalances(0.01)
    changes.revoked(A)
    change = changes.first()
    assert change is not None
    assert not change.begin()


def test_nobody_waits_for_a_program_that_has_turned_away() -> None:
    """When the member has ended, its callbacks return immediately, waiting ones and later ones."""
    changes = Rebalances(60)
    waiting = threading.Thread(target=changes.revoked, args=(A,))
    waiting.start()
    while not changes:
        pass
    changes.abandon()
    waiting.join(10)
    assert not waiting.is_alive()
    changes.revoked(B)


def test_partitions_of_deleted_topics_are_lost_before_others_are_revoked() -> None:
    """A commit in on_revoke named them, too: the broker refused it, and its error came out of poll."""
    changes = Rebalances(0, gone=lambda topic: topic == "deleted")
    deleted = frozenset({("deleted", 0)})
    changes.revoked(deleted)
    changes.revoked(A | deleted)
    changes.revoked(frozenset())
    seen = []
    while (change := changes.first()) is not None:
        seen.append((change.kind, change.partitions))
        changes.remove_first()
    lost = (Kind.LOST, deleted)
    assert seen == [lost, lost, (Kind.REVOKED, A), (Kind.REVOKED, frozenset())]
