"""Partitions that the program assigns itself, as confluent_kafka.Consumer reads them."""

import time
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING

from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import Bench, Case, Raised, at, attempt, check, plain, read

pytestmark = pytest.mark.long


def it_reads_from_the_offsets_on(bench: Bench) -> Any:
    """Of these partitions only; another call replaces them."""
    one = bench.make()
    one.assign([at(0, 47), at(1, OFFSET_BEGINNING)])
    first = read(one, RECORDS + 3)
    one.assign([at(1, 45), at(2, 48)])
    return [first, read(one, 7), sorted((p.topic, p.partition) for p in one.assignment()), one.poll(0.1)]


def partitions_come_and_go(bench: Bench) -> Any:
    """incremental_assign, incremental_unassign, unassign; what is there already cannot come."""
    one = bench.make()
    one.incremental_assign([at(0, 48)])
    first = read(one, 2)
    one.incremental_assign([at(1, 49)])
    second = read(one, 1)
    again = attempt(lambda: one.incremental_assign([at(1, 3)]))
    one.incremental_unassign([at(0)])
    left = sorted(p.partition for p in one.assignment())
    one.unassign()
    return [first, second, again, left, one.assignment(), one.poll(0.05)]


def commits_are_found_by_the_next_one(bench: Bench) -> Any:
    """Without an offset it begins where the group has committed; on_commit is called."""
    seen: list[Any] = []
    one = bench.make(on_commit=lambda error, partitions: seen.append((error, plain(partitions))))
    one.assign([at(0, 40)])
    found = read(one, 10)
    results = [plain(one.commit(offsets=[at(0, 44, metadata="note")], asynchronous=False))]
    one.commit(offsets=[at(0, 45)])
    until = time.monotonic() + 10
    while not seen and time.monotonic() < until:
        one.poll(0.05)
    results += [plain(one.committed([at(0)], 10)), plain(one.position([at(0)]))]
    one.assign([at(0)])
    return [found, results, seen, read(one, 5)]


def the_end_commits_what_was_delivered(bench: Bench) -> Any:
    """If the program commits automatically; the clock does so, too."""
    one = bench.make(**{"enable.auto.commit": True, "auto.commit.interval.ms": 100, "group.id": f"end-{bench.kind}"})
    one.assign([at(0, 40)])
    read(one, 10)
    until = time.monotonic() + 10
    while plain(one.committed([at(0)], 10))[0][2] != RECORDS and time.monotonic() < until:
        one.poll(0.05)
    by_clock = plain(one.committed([at(0)], 10))
    one.seek(at(0, 42))
    one.assign([at(1, 45)])
    read(one, 5)
    one.close()
    other = bench.make(**{"group.id": f"end-{bench.kind}"})
    return [by_clock, plain(other.committed([at(1)], 10))]


def pause_and_seek(bench: Bench) -> Any:
    """As in a group."""
    one = bench.make()
    one.assign([at(0, 40), at(1, 45)])
    read(one, 15)
    one.pause([at(0)])
    one.seek(at(1, 48))
    first = read(one, 2)
    one.seek(at(0, 49))
    silent = one.poll(0.1)
    one.resume([at(0)])
    return [first, silent, read(one, 1)]


def a_pause_outlives_the_assignment(bench: Bench) -> Any:
    """Until the program resumes the partition."""
    one = bench.make()
    one.assign([at(0, 40)])
    read(one, 10)
    one.pause([at(0)])
    one.unassign()
    one.assign([at(0, 45), at(1, 48)])
    others, silent = read(one, 2), one.poll(0.3)
    one.resume([at(0)])
    return [others, silent, read(one, 5)]


def a_subscription_replaces_it(bench: Bench) -> Any:
    """And calls its own callbacks only."""
    seen: list[str] = []
    one = bench.make()
    one.assign([at(0, 40)])
    read(one, 10)
    one.unassign()
    one.subscribe(["t"], on_assign=lambda *_: seen.append("assigned"), on_revoke=lambda *_: seen.append("revoked"))
    found = read(one, 3 * RECORDS)
    one.unsubscribe()
    one.poll(0.05)  # the bare client releases its partitions here
    one.assign([at(1, 49)])
    after = read(one, 1)
    one.close()
    return [seen, found, after]


def offsets_that_cannot_begin(bench: Bench) -> Any:
    """They are refused, and so are partitions that come twice."""
    one = bench.make()
    refused = [attempt(lambda: one.assign([at(1, -7)])), attempt(lambda: one.assign([at(1, 1), at(1, 2)]))]
    one.assign([at(0, 49)])
    return [refused, all(isinstance(each, Raised) for each in refused), read(one, 1)]


CASES = [
    it_reads_from_the_offsets_on,
    partitions_come_and_go,
    commits_are_found_by_the_next_one,
    the_end_commits_what_was_delivered,
    pause_and_seek,
    a_pause_outlives_the_assignment,
    a_subscription_replaces_it,
    offsets_that_cannot_begin,
]


@pytest.mark.parametrize("body", CASES, ids=lambda body: body.__name__)
def test_both_consumers_do_the_same(cluster: MockCluster, body: Case) -> None:
    """A program changes its class, and nothing else."""
    check(body, cluster)
