"""What a program chooses to read of its partitions, in `on_assign` and later, as confluent_kafka.Consumer lets it."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import COOPERATIVE, Bench, Case, at, attempt, check, plain, read

pytestmark = pytest.mark.long

Choose = Callable[[Any, Any], Any]
EAGER: dict[str, Any] = {}


def chosen(bench: Bench, config: dict[str, Any], choose: Choose, records: int, **more: Any) -> Any:
    """What a consumer with this on_assign reads, is assigned, and reports at its end."""
    inside: list[Any] = []
    revoked: list[Any] = []

    def on_assign(one: Any, partitions: Any) -> None:
        inside.append([attempt(lambda: choose(one, partitions)), plain(one.assignment())])

    one = bench.make(**config, **more)
    one.subscribe(
        ["t"], on_assign=on_assign, on_revoke=lambda own, p: revoked.append([sorted(plain(p)), plain(own.assignment())])
    )
    until = time.monotonic() + 20
    first: list[Any] = []
    while not inside and time.monotonic() < until:
        first += one.consume(1, 0.05)
    found = sorted([(m.partition(), m.offset()) for m in first] + read(one, records - len(first)))
    silent = one.poll(0.3)
    later = [plain(one.assignment()), plain(one.position([at(0), at(1), at(2)]))]
    commits = [attempt(lambda: plain(one.commit(offsets=[at(2, 3)], asynchronous=False)))]
    one.close()
    # Whether the bare client calls on_revoke for partitions of which it reads none differs from run to run.
    return [inside, found, silent, later, commits, revoked if found else None]


def _several(one: Any, partitions: Any) -> None:
    one.incremental_assign(partitions[:1])
    one.incremental_assign(partitions[1:])
    one.incremental_unassign(partitions[:1])


def _none_after_all(one: Any, partitions: Any) -> None:
    one.assign(partitions)
    one.unassign()


CHOICES: dict[str, tuple[dict[str, Any], Choose, int]] = {
    "one of them": (EAGER, lambda one, partitions: one.assign(partitions[:1]), RECORDS),
    "none": (EAGER, lambda one, _: one.unassign(), 0),
    "an empty list": (EAGER, lambda one, _: one.assign([]), 0),
    "all, then none": (EAGER, _none_after_all, 0),
    "offsets": (EAGER, lambda one, _: one.assign([at(0, 45), at(1, OFFSET_BEGINNING), at(2, OFFSET_END)]), RECORDS + 5),
    "an offset that cannot be": (EAGER, lambda one, _: one.assign([at(0, -7)]), 0),
    "one that comes twice": (EAGER, lambda one, _: one.assign([at(0, 1), at(0, 2)]), 0),
    "one in addition": (COOPERATIVE, lambda one, partitions: one.incremental_assign(partitions[:1]), RECORDS),
    "one in addition, with an offset": (COOPERATIVE, lambda one, _: one.incremental_assign([at(0, 45)]), 5),
    "none in addition": (COOPERATIVE, lambda one, _: one.incremental_assign([]), 0),
    "some that come and go": (COOPERATIVE, _several, 2 * RECORDS),
    "less than nothing": (COOPERATIVE, lambda one, partitions: one.incremental_unassign(partitions[:1]), 0),
    "nothing said": (COOPERATIVE, lambda *_: None, 3 * RECORDS),
}


@pytest.mark.parametrize("name", CHOICES)
def test_only_what_the_program_assigns_in_on_assign_is_read(cluster: MockCluster, name: str) -> None:
    """The rest stays this member's: it may be committed, and is revoked from it at the end."""
    config, choose, records = CHOICES[name]
    check(lambda bench: chosen(bench, config, choose, records), cluster)


def a_choice_may_come_later(bench: Bench) -> Any:
    """A program that is not ready reads nothing, and assigns outside of the callback; offsets are kept."""
    told: list[Any] = []
    one = bench.make()
    one.subscribe(["t"], on_assign=lambda own, _: told.append(own.unassign()))
    until = time.monotonic() + 20
    while not told and time.monotonic() < until:
        one.poll(0.05)
    silent = one.poll(0.2)
    one.assign([at(0, 45), at(1, 48)])
    first = read(one, 7)
    one.assign([at(2, 47)])
    second = read(one, 3)
    listed = plain(one.assignment())
    committed = plain(one.commit(asynchronous=False))
    twice = attempt(lambda: one.assign([at(1, 1), at(1, 2)]))
    one.unassign()
    return [silent, first, second, listed, committed, twice, one.assignment(), one.poll(0.1)]


def partitions_come_and_go_later(bench: Bench) -> Any:
    """In the cooperative protocol one by one, and where the broker assigns."""
    cooperative: dict[str, Any] = {**COOPERATIVE} if bench.protocol == "classic" else {}
    one, _ = bench.joined(**cooperative)
    one.incremental_unassign([at(0)])
    left = [plain(one.assignment()), plain(one.position([at(0)])), attempt(lambda: one.seek(at(0, 44)))]
    again = attempt(lambda: one.incremental_assign([at(1, 3)]))
    one.incremental_assign([at(0, 44)])
    return [left, again, read(one, 6), plain(one.assignment())]


def progress_is_committed_when_reading_ends(bench: Bench) -> Any:
    """If the program commits automatically: of what it no longer reads, and at the end of the rest."""
    group = f"ends-{bench.kind.__name__}-{time.monotonic()}"
    auto = {"enable.auto.commit": True, "auto.commit.interval.ms": 60_000, "group.id": group}
    one, _ = bench.joined(on_assign=lambda own, _: own.assign([at(0, 40), at(1, 45)]), records=15, **auto)
    one.assign([at(1, 48)])
    read(one, 2)
    one.close()
    other = bench.make(**{"group.id": group})
    return plain(other.committed([at(0), at(1), at(2)], 10))


CASES = [a_choice_may_come_later, partitions_come_and_go_later, progress_is_committed_when_reading_ends]


@pytest.mark.parametrize("body", CASES, ids=lambda body: body.__name__)
def test_both_consumers_do_the_same(cluster: MockCluster, body: Case) -> None:
    """A program changes its class, and nothing else."""
    check(body, cluster)
