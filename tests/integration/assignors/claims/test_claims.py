"""One suite for all databases and forms: what `PartitionClaims` promises holds on each of them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from sqlalchemy import Connection, select

from assignors.claims import (
    Claim,
    ClaimLostError,
    ClaimsAwayError,
    ClaimsError,
    Lease,
    PartitionClaims,
    Picking,
    Visit,
)
from tests.integration.assignors.claims.conftest import Way

pytestmark = pytest.mark.integration

SHORT = Lease(lease_s=1.5, hold_s=3600)  # longer than a busy database takes for three statements


def partitions(count: int) -> list[tuple[str, int]]:
    """Partitions of two topics whose names differ in case only."""
    return [("flights" if n % 2 else "Flights", n // 2) for n in range(count)]


def keys(claims: list[Claim]) -> set[tuple[str, int]]:
    """Which partitions."""
    return {(one.topic, one.partition) for one in claims}


def wait_until(claims: PartitionClaims, free: int) -> None:
    """Wait until so many partitions are free, as the database sees it."""
    deadline = time.monotonic() + 20
    while sum(not one.held for one in claims.standings()) < free:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_each_partition_has_one_holder(way: Way) -> None:
    """Two owners divide what there is, and a third finds nothing; names that differ in case are two topics."""
    first, second, third = way.claims(), way.claims(), way.claims()
    assert first.register(partitions(10)) == 10
    assert second.register(partitions(12)) == 2
    mine, others = first.claim(7), second.claim(7)
    assert (len(mine), len(others)) == (7, 5)
    assert keys(mine) | keys(others) == set(partitions(12))
    assert third.claim(7) == []


def test_the_longest_unpicked_comes_first_and_new_ones_before_all(way: Way) -> None:
    """Over and over, each partition comes once a round: none is starved by those that return earlier."""
    claims = way.claims()
    claims.register(partitions(6))
    rounds = []
    for _ in range(3):
        seen: list[tuple[str, int]] = []
        for _ in range(3):
            held = claims.claim(2)
            seen += keys(held)
            claims.disown(held)
            time.sleep(0.003)  # the order is by the millisecond
        rounds.append(sorted(seen))
    if way.form.value != "optimistic":  # which draws among the oldest
        assert rounds == [sorted(partitions(6))] * 3
        claims.register([("new", 0)])
        assert claims.claim(1)[0].topic == "new"


def test_epochs_rise_and_offsets_are_handed_on(way: Way) -> None:
    """The next holder finds what the last one committed, under a higher epoch."""
    first, second = way.claims(), way.claims()
    first.register([("t", 0)])
    (before,) = first.claim(1)
    assert (before.committed_offset, before.waited_s) == (None, None)
    first.commit({before: 41})
    first.commit({before: 42})
    assert first.disown([before]) == []
    (after,) = second.claim(1)
    assert after.epoch > before.epoch
    assert after.committed_offset == 42
    assert after.waited_s is not None
    assert 0 <= after.waited_s < 20


def test_a_lease_that_ends_is_anothers_and_the_zombie_is_refused(way: Way) -> None:
    """Commit, renewal and disowning of the holder before write nothing, and the error names what was lost."""
    zombie, next_one = way.claims(lease=SHORT), way.claims()
    zombie.register(partitions(2))
    old = zombie.claim(2)
    assert next_one.claim(2) == []
    wait_until(next_one, 2)
    new = next_one.claim(1)
    for _ in range(2):
        with pytest.raises(ClaimLostError, match="not held by") as raised:
            zombie.commit(dict.fromkeys(old, 99))
        assert raised.value.lost == tuple(old)  # one is anothers, of one the lease is over
    assert zombie.renew(old) == []
    assert zombie.disown(old) == old
    standings = {(one.topic, one.partition): one for one in next_one.standings()}
    assert all(one.committed_offset is None for one in standings.values())
    assert standings[(new[0].topic, new[0].partition)].held
    next_one.commit({new[0]: 5})


def test_a_commit_goes_through_for_those_still_held(way: Way) -> None:
    """One lost claim does not undo the others' commits."""
    claims = way.claims()
    claims.register(partitions(3))
    held = claims.claim(3)
    claims.disown(held[:1])
    with pytest.raises(ClaimLostError) as raised:
        claims.commit(dict.fromkeys(held, 7))
    assert raised.value.lost == (held[0],)
    assert sorted(one.committed_offset or 0 for one in claims.standings()) == [0, 7, 7]


def test_an_epoch_of_an_owners_own_past_is_refused(way: Way) -> None:
    """The owner holds the partition again, but a thread of it still works for the claim before."""
    claims = way.claims()
    claims.register([("t", 0)])
    (old,) = claims.claim(1)
    claims.disown([old])
    (new,) = claims.claim(1)
    with pytest.raises(ClaimLostError):
        claims.commit({old: 1})
    claims.commit({new: 2})


def test_epochs_do_not_begin_again(way: Way) -> None:
    """A partition that was forgotten and registered again (a recreated topic) repeats no epoch."""
    claims = way.claims()
    claims.register([("t", 0)])
    (old,) = claims.claim(1)
    claims.forget([("t", 0)])
    assert claims.known() == set()
    claims.register([("t", 0)])
    (new,) = claims.claim(1)
    assert new.epoch > old.epoch
    with pytest.raises(ClaimLostError):
        claims.commit({old: 1})


def test_renewals_hold_no_longer_than_the_longest_hold(way: Way) -> None:
    """A lease that is renewed lasts, up to the hold; then the partition is free although its holder lives."""
    holder, other = way.claims(lease=Lease(lease_s=0.5, hold_s=1.2)), way.claims()
    holder.register([("t", 0)])
    began = time.monotonic()
    held = holder.claim(1)
    while holder.renew(held):
        assert time.monotonic() - began < 20
        time.sleep(0.05)
    assert time.monotonic() - began > 1.1
    wait_until(other, 1)
    assert len(other.claim(1)) == 1


def test_closing_disowns(way: Way) -> None:
    """What a job holds at its end is free at once."""
    with way.claims() as first:
        first.register(partitions(4))
        assert len(first.claim(4)) == 4
    assert len(way.claims().claim(4)) == 4


def test_clusters_do_not_mix(way: Way) -> None:
    """The same topic of two clusters is two partitions."""
    here, there = way.claims(cluster="here"), way.claims(cluster="there")
    here.register([("t", 0)])
    there.register([("t", 0)])
    assert len(here.claim(5)) == len(there.claim(5)) == 1


def test_a_partition_is_due_at_once_if_a_job_needs_it(way: Way) -> None:
    """Only that one, and not while another job holds it."""
    seldom = Picking(worth_records=1_000, longest_s=3_000)
    one, other = way.claims(picking=seldom), way.claims(picking=seldom)
    one.register([("t", number) for number in range(4)])
    held = one.claim(4)
    one.disown(dict.fromkeys(held[:3], Visit()))
    assert other.claim(4) == []
    other.hasten([("t", 0), ("t", 3), ("unknown", 0)])
    assert [claim.partition for claim in other.claim(4)] == [0]
    assert one.renew(held[3:]) == held[3:]


def test_quiet_partitions_are_not_due_until_a_visit_is_worthwhile(way: Way) -> None:
    """One that gave nothing rests, one that left records behind comes back at once, and the rest ends."""
    claims = way.claims(picking=Picking(worth_records=1000, longest_s=0.6))
    claims.register([("busy", 0), ("quiet", 0)])
    busy, quiet = claims.claim(2)
    claims.disown({busy: Visit(records=500, more=True), quiet: Visit()})
    assert [one.topic for one in claims.claim(2)] == ["busy"]
    deadline = time.monotonic() + 20
    while not (found := claims.claim(2)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert found[0].topic == "quiet"
    assert found[0].waited_s is not None
    assert found[0].waited_s >= 0.6


def test_a_clients_clock_changes_nothing(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose clock is years ahead or behind takes nothing early, keeps nothing longer, and loses nothing."""
    holder, other = way.claims(), way.claims()
    holder.register([("t", 0)])
    (held,) = holder.claim(1)
    for jump_s in (-1e8, 1e8):
        real = time.time()

        def wrong(at: float = real + jump_s) -> float:
            return at

        with monkeypatch.context() as patch:
            patch.setattr(time, "time", wrong)
            assert abs(datetime.now().timestamp() - real) < 60  # noqa: DTZ005 -- only time.time was turned
            assert other.claim(1) == []
            assert holder.renew([held]) == [held]
            holder.commit({held: 5})
    assert 0 < holder.standings()[0].lease_s <= 30.1


def test_a_database_clock_that_went_back_heals(way: Way) -> None:
    """Leases and due times further ahead than any can be count as over; the epoch still refuses the holder before."""
    holder, other = way.claims(), way.claims()
    holder.register(partitions(2))
    held = holder.claim(2)
    way.sql("UPDATE {table} SET lease_until = lease_until + 86400000, due_at = due_at + 86400000")
    assert len(other.claim(2)) == 2
    with pytest.raises(ClaimLostError):
        holder.commit(dict.fromkeys(held, 1))


def test_claims_at_once_are_disjoint(way: Way) -> None:
    """Eight owners claim concurrently and repeatedly: each epoch of a partition is issued once, no owner blocks."""
    owners = [way.claims() for _ in range(8)]
    owners[0].register(partitions(40))
    given: list[Claim] = []
    lock = threading.Lock()

    def work(claims: PartitionClaims) -> None:
        for n in range(6):
            held = claims.claim(4)
            with lock:
                given.extend(held)
            claims.commit(dict.fromkeys(held, n))
            assert claims.disown(held) == []

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, one) for one in owners]:
            done.result()
    seen = [(one.topic, one.partition, one.epoch) for one in given]
    assert len(seen) == len(set(seen)) > 60
    epochs: dict[tuple[str, int], list[int]] = {}
    for topic, partition, epoch in seen:
        epochs.setdefault((topic, partition), []).append(epoch)
    assert all(sorted(found) == list(range(min(found), max(found) + 1)) for found in epochs.values())


def test_a_database_that_goes_away_is_named_and_heals(way: Way) -> None:
    """SIGKILL of the server: a named error within seconds; the same object works again after the restart."""
    if way.kind == "sqlite":
        pytest.skip("SQLite has no server")
    claims = way.claims()
    claims.register(partitions(4))
    held = claims.claim(2)
    claims.commit(dict.fromkeys(held, 11))
    way.server.kill()
    for call in (lambda: claims.claim(1), lambda: claims.commit(dict.fromkeys(held, 12)), claims.standings):
        with pytest.raises(ClaimsAwayError, match="does not answer"):
            call()
    way.server.start()
    assert len(claims.claim(4)) == 2
    claims.commit(dict.fromkeys(held, 13))
    assert sorted(one.committed_offset or 0 for one in claims.standings()) == [0, 0, 13, 13]


def test_who_is_stopped_within_a_transaction_holds_no_row_longer_than_its_lease(way: Way) -> None:
    """The server ends an idle transaction; SQLite has no server to do so, as the process holds the lock."""
    if way.kind == "sqlite":
        pytest.skip("a limit of SQLite, which the documentation states")
    holder, other = way.claims(lease=Lease(lease_s=1, hold_s=3600)), way.claims()
    holder.register(partitions(1))
    (new,) = set(partitions(2)) - set(partitions(1))
    rows = [{"cluster": "c", "topic": new[0], "partition": new[1]}]
    with ThreadPoolExecutor(1) as thread:

        def stopped(connection: Connection) -> None:
            holder._insert(connection, rows)
            # It waits for the row, until the server has ended this transaction.
            thread.submit(other.register, partitions(2)).result(20)
            connection.execute(select(1))

        with pytest.raises(ClaimsAwayError):
            holder._database.transaction(stopped)
    assert holder.known() == set(partitions(2))


def test_a_table_that_is_missing_is_no_absence_of_the_database(way: Way) -> None:
    """The error tells the two apart, and does not show a password."""
    with pytest.raises(ClaimsError) as raised:
        way.claims(table=f"{way.table}_none").standings()
    assert not isinstance(raised.value, ClaimsAwayError)
    assert "claims:claims" not in str(raised.value)
    with pytest.raises(ClaimsError, match="most=0"):
        way.claims().claim(0)
