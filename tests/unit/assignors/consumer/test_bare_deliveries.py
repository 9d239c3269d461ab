"""Records and commits as confluent_kafka.Consumer delivers and keeps them."""

import time
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import Bench, Case, Raised, at, attempt, check, plain, read

pytestmark = pytest.mark.long


def commits_are_found_again(bench: Bench) -> Any:
    """Of everything, of a record, of offsets with metadata, with one that is left out."""
    one, found = bench.joined()
    third = next(m for m in found if m.partition() == 1 and m.offset() == 3)
    results = [
        plain(one.commit(asynchronous=False)),
        plain(one.commit(third, asynchronous=False)),
        plain(one.commit(offsets=[at(0, 5, metadata="hello")], asynchronous=False)),
    ]
    return [*results, plain(one.committed([at(n) for n in range(3)], 10))]


def asynchronous_commits_call_on_commit_each(bench: Bench) -> Any:
    """With no error and the offsets of the call, also at the end."""
    seen: list[Any] = []
    one, found = bench.joined(on_commit=lambda error, partitions: seen.append((error, plain(partitions))))
    zero = [m for m in found if m.partition() == 0]
    for number in (0, 3, 5):
        one.commit(zero[number])
    until = time.monotonic() + 10
    while len(seen) < 3 and time.monotonic() < until:
        one.poll(0.05)
    one.commit(zero[7])
    one.close()
    return seen


def on_commit_that_raises(bench: Bench) -> Any:
    """Its error comes out of poll."""

    def broken(*_: object) -> None:
        raise LookupError

    one, found = bench.joined(on_commit=broken)
    one.commit(found[0])
    for _ in range(100):
        if isinstance(result := attempt(lambda: one.poll(0.05)), Raised):
            return result
    return "never"


def an_idle_consumer_repeats_no_automatic_commit(bench: Bench) -> Any:
    """Neither of its progress, nor over an offset with metadata that the program committed."""
    seen: list[Any] = []
    one, _ = bench.joined(
        on_commit=lambda error, partitions: seen.append((error, plain(partitions))),
        **{"enable.auto.commit": True, "auto.commit.interval.ms": 50},
    )
    until = time.monotonic() + 10
    committed: dict[int, int] = {}
    while committed != dict.fromkeys(range(3), RECORDS) and time.monotonic() < until:
        one.poll(0.05)
        committed |= {number: at for _, partitions in seen for _, number, at, _ in partitions if at > 0}
    one.commit(offsets=[at(0, RECORDS, metadata="mine")], asynchronous=False)
    one.poll(0.1)  # the report of that commit, if there is one
    before = len(seen)
    for _ in range(10):
        one.poll(0.05)
    return [committed, len(seen) - before, plain(one.committed([at(0)], 10))]


def seek_and_pause(bench: Bench) -> Any:
    """To an offset, to both ends; a paused partition delivers nothing until it is resumed."""
    one, _ = bench.joined()
    one.pause([at(1)])
    one.seek(at(0, 47))
    one.seek(at(1, 40))
    one.seek(at(2, OFFSET_END))
    first = read(one, 3)
    silent = one.poll(0.1)
    one.resume([at(1)])
    second = read(one, 10)
    one.seek(at(2, OFFSET_BEGINNING))
    return [first, silent, second, read(one, RECORDS)]


def one_by_one(bench: Bench) -> Any:
    """Poll delivers each record once; what it has delivered is the position, and pausing keeps the rest."""
    one = bench.make()
    one.subscribe(["t"])
    found: list[Any] = []
    while len(found) < 30:
        found += [m for m in [one.poll(0.1)] if m is not None]
    one.pause(one.assignment())
    after = {p.partition: p.offset for p in one.position(one.assignment()) if p.offset > 0}
    counted = {n: sum(m.partition() == n for m in found) for n in range(3)}
    silent = one.poll(0.1)
    one.resume(one.assignment())
    while len(found) < 3 * RECORDS:
        found += [m for m in [one.poll(0.1)] if m is not None]
    whole = sorted((m.partition(), m.offset()) for m in found)
    return [silent, after == {n: count for n, count in counted.items() if count}, whole]


CASES = [
    commits_are_found_again,
    asynchronous_commits_call_on_commit_each,
    on_commit_that_raises,
    an_idle_consumer_repeats_no_automatic_commit,
    seek_and_pause,
    one_by_one,
]


@pytest.mark.parametrize("body", CASES, ids=lambda body: body.__name__)
def test_both_consumers_do_the_same(cluster: MockCluster, body: Case) -> None:
    """A program changes its class, and nothing else."""
    check(body, cluster)
