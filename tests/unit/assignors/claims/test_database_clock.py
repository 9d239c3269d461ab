"""Leases and due times when the database's clock goes back."""

import sqlite3
from pathlib import Path

import pytest

from assignors.claims import Claim, ClaimLostError, Form, Lease, PartitionClaims, Picking, Visit

LEASE = Lease(lease_s=30)
PICKING = Picking(worth_records=1000, longest_s=60)


def jobs(file: Path, form: Form) -> tuple[PartitionClaims, PartitionClaims]:
    """Two of one set."""
    first, second = (
        PartitionClaims(f"sqlite:///{file}", cluster="c", lease=LEASE, picking=PICKING, form=form) for _ in range(2)
    )
    first.register([("t", 0)])
    return first, second


def set_back(file: Path, seconds: float) -> None:
    """Make rows look as after the clock went back: all their times are further ahead."""
    columns = ("lease_until", "hold_until", "updated_at", "last_picked_at", "due_at")
    moved = ", ".join(
        f"{name} = CASE WHEN {name} > 0 THEN {name} + {int(seconds * 1000)} ELSE {name} END" for name in columns
    )
    with sqlite3.connect(file) as database:
        database.execute(f"UPDATE partition_claims SET {moved}")  # noqa: S608 -- names of columns
    database.close()


@pytest.mark.parametrize("form", [Form.LOCKING, Form.OPTIMISTIC])
@pytest.mark.parametrize("back_s", [60.0, 3000.0, 4000.0, 1e8], ids="{:g} s".format)
def test_a_clock_that_goes_back_keeps_no_partition_for_longer_than_its_lease(
    tmp_path: Path, back_s: float, form: Form
) -> None:
    """Back by 50 minutes: a dead job kept its partitions for 50 minutes, and could commit after its lease of 30 s."""
    file = tmp_path / "c.db"
    dead, living = jobs(file, form)
    (old,) = dead.claim(1)
    set_back(file, back_s)
    assert [one.held for one in living.standings()] == [False]
    with pytest.raises(ClaimLostError):
        dead.commit({old: 5})
    (new,) = living.claim(1)
    assert new.epoch > old.epoch
    living.commit({new: 7})
    assert not dead.renew([old])
    assert [(one.held, one.committed_offset) for one in living.standings()] == [(True, 7)]


@pytest.mark.parametrize("back_s", [60.0, 3000.0], ids="{:g} s".format)
def test_a_clock_that_goes_back_lets_no_partition_wait(tmp_path: Path, back_s: float) -> None:
    """A partition that was due in a minute would otherwise be due in an hour."""
    file = tmp_path / "c.db"
    first, second = jobs(file, Form.LOCKING)
    (claim,) = first.claim(1)
    first.disown({claim: Visit()})
    assert not second.claim(1), "not due yet"
    set_back(file, back_s)
    assert [(one.topic, one.partition) for one in second.claim(1)] == [("t", 0)]


@pytest.mark.parametrize("back_s", [0.0, 0.5, 3.0])
def test_a_small_step_back_takes_no_claim_away(tmp_path: Path, back_s: float) -> None:
    """Clocks are sometimes corrected by a second."""
    file = tmp_path / "c.db"
    first, second = jobs(file, Form.LOCKING)
    held: list[Claim] = first.claim(1)
    set_back(file, back_s)
    assert not second.claim(1)
    assert first.renew(held) == held
    first.commit(dict.fromkeys(held, 3))
