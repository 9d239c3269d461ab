"""Epochs of leaders (KIP-320) and the results of commits, as confluent_kafka.Consumer has them."""

import math
import time
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    Consumer,
    KafkaError,
    KafkaException,
)

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import Bench, Case, Raised, at, attempt, check, plain, read

pytestmark = pytest.mark.long

EPOCHS: dict[str, Any] = {"api_version": (2, 1)}  # older requests carry no epoch of offsets
BROKERS = (1, 2, 3)
ALL = [at(0), at(1), at(2)]


def with_epochs(partitions: Any) -> Any:
    """Partition, offset and the epoch of its leader, of partitions with an offset."""
    if not isinstance(partitions, list):
        return partitions
    return [(one.partition, one.offset, one.offset >= 0 and one.leader_epoch) for one in partitions]


def epochs_of_positions_and_commits(bench: Bench) -> Any:
    """A consumer that continues elsewhere finds a truncated log by them."""
    one, found = bench.joined(**EPOCHS)
    last = next(m for m in found if (m.partition(), m.offset()) == (0, 10))
    return [
        with_epochs(one.position(ALL)),
        with_epochs(one.commit(asynchronous=False)),
        with_epochs(one.committed(ALL, 10)),
        with_epochs(one.commit(last, asynchronous=False)),
        with_epochs(one.commit(offsets=[at(1, 4, leader_epoch=1), at(2, 3)], asynchronous=False)),
        with_epochs(one.committed([at(0), at(1)], 10)),
        attempt(lambda: one.commit(offsets=[at(0, 5, leader_epoch=9)], asynchronous=False)),
    ]


def epochs_of_stored_offsets(bench: Bench) -> Any:
    """Of a record, and of an offset that the program gives."""
    one, found = bench.joined(**EPOCHS, **{"enable.auto.offset.store": False})
    one.store_offsets(next(m for m in found if (m.partition(), m.offset()) == (0, 10)))
    one.store_offsets(offsets=[at(1, 7, leader_epoch=1)])
    return [with_epochs(one.commit(asynchronous=False)), with_epochs(one.committed([at(0), at(1)], 10))]


def partitions_without_progress_are_listed(bench: Bench) -> Any:
    """A commit without arguments returns all partitions that are read."""
    one, _ = bench.joined(on_assign=lambda own, _: own.assign([at(0, 40), at(1, RECORDS), at(2, RECORDS)]), records=10)
    return with_epochs(one.commit(asynchronous=False))


def so_they_are_by_hand(bench: Bench) -> Any:
    """Also of partitions that the program assigns."""
    one = bench.make()
    one.assign([at(0, 40), at(1, RECORDS)])
    read(one, 10)
    return with_epochs(one.commit(asynchronous=False))


def stored_in_on_revoke(bench: Bench) -> Any:
    """A program that ends its work in on_revoke: what it stores there is committed automatically, too."""
    group: dict[str, Any] = {"group.id": f"stored-{bench.kind}"}
    settings: dict[str, Any] = {
        "enable.auto.commit": True,
        "enable.auto.offset.store": False,
        "auto.commit.interval.ms": 60_000,
    }
    one, _ = bench.joined(on_revoke=lambda own, _: own.store_offsets(offsets=[at(1, 7), at(2, 7)]), **settings, **group)
    one.store_offsets(offsets=[at(0, 5), at(1, 5)])
    one.close()
    return plain(bench.make(**group).committed(ALL, 10))


def stored_offsets_are_taken_back(bench: Bench) -> Any:
    """By each offset that is none; of the other partitions they stay."""
    one, _ = bench.joined(**{"enable.auto.offset.store": False})
    found: list[Any] = []
    for count, offset in enumerate((OFFSET_INVALID, OFFSET_STORED, OFFSET_END, OFFSET_BEGINNING, -5), 1):
        one.store_offsets(offsets=[at(0, 9), at(1, count), at(2, count)])
        one.store_offsets(offsets=[at(0, offset), at(2, 10 + count)])
        one.commit(asynchronous=False)
        found.append(plain(one.committed(ALL, 10)))
    return found


def partitions_without_an_offset_are_listed(bench: Bench) -> Any:
    """A program may commit a list of which only some have one; the call may get any iterable here."""
    one, _ = bench.joined()
    given = [[at(0, 5), at(1), at(2, offset)] for offset in (-1001, -1000, -1, -5)]
    return [plain(one.commit(offsets=offsets, asynchronous=False)) for offsets in given]


def partitions_come_in_their_own_order(bench: Bench) -> Any:
    """A program that takes a partition out of the list by its place must find the same one."""
    seen: list[Any] = []
    one, _ = bench.joined(on_commit=lambda error, partitions: seen.append((error, plain(partitions))))
    given = [at(2, 5), at(1), at(0, 6)]
    one.commit(offsets=given)
    until = time.monotonic() + 10
    while not seen:
        assert time.monotonic() < until
        one.poll(0.05)
    listed = [plain(one.commit(asynchronous=False)), plain(one.commit(offsets=given, asynchronous=False))]
    others = [plain(call) for call in (one.position(given), one.committed(given, 10), one.assignment())]
    by_hand = bench.make()
    by_hand.assign([at(2, 49), at(1, RECORDS), at(0, 49)])
    read(by_hand, 2)
    return [seen[0], listed, others, plain(by_hand.commit(asynchronous=False)), plain(by_hand.assignment())]


def answers_to_commits_without_an_offset(bench: Bench) -> Any:
    """A program that counts the answers to its commits waits for one to each, also where nothing is to be committed."""
    seen: list[Any] = []
    settings: dict[str, Any] = {
        "enable.auto.offset.store": False,
        "on_commit": lambda error, partitions: seen.append((error and error.code(), plain(partitions))),
    }
    by_hand = bench.make(**settings)
    by_hand.assign(ALL)
    calls: list[dict[str, Any]] = [{}, *({"offsets": offsets} for offsets in ([], [at(0)], [at(0, 5), at(1)]))]
    for one in (bench.joined(**settings)[0], by_hand):
        for call in calls:
            before = len(seen)
            one.commit(**call)
            until = time.monotonic() + 10
            while len(seen) == before:
                assert time.monotonic() < until
                one.poll(0.05)
    return seen


def answers_to_the_last_automatic_commits(bench: Bench) -> Any:
    """A program that records what is committed hears of the commits in `close` and `unsubscribe`, too."""
    seen: list[list[Any]] = []
    for end in ("close", "unsubscribe"):
        answers: list[Any] = []
        settings: dict[str, Any] = {
            "enable.auto.commit": True,
            "auto.commit.interval.ms": 60_000,
            "on_commit": lambda error, partitions, answers=answers: answers.append((error, plain(partitions))),
        }
        one, _ = bench.joined(**settings)
        getattr(one, end)()
        until = time.monotonic() + (0 if end == "close" else 10)
        while not answers and time.monotonic() < until:
            one.poll(0.05)
        seen.append(list(answers))
    return seen


def a_partition_that_is_unknown_for_a_moment(bench: Bench) -> Any:
    """A broker that has just started may not know a topic yet."""
    one, _ = bench.joined()
    assert isinstance(bench.cluster, MockCluster)
    bench.cluster.fail(8, KafkaError.UNKNOWN_TOPIC_OR_PART, 1)
    return plain(one.commit(offsets=[at(0, 5)], asynchronous=False))


def times_that_are_any_number(bench: Bench) -> Any:
    """A Decimal was a TypeError."""
    one, _ = bench.joined()
    one.commit(offsets=[at(0, 5)], asynchronous=False)
    return [plain(one.committed([at(0)], timeout=seconds)) for seconds in (Decimal(5), Fraction(5), 5, True)]


def a_time_that_is_no_number(bench: Bench) -> Any:
    """It was a ValueError about a conversion, and no KafkaException."""
    one, _ = bench.joined()
    return isinstance(attempt(lambda: one.committed([at(0)], timeout=math.nan)).error, KafkaException)


CASES = [
    a_time_that_is_no_number,
    times_that_are_any_number,
    answers_to_the_last_automatic_commits,
    answers_to_commits_without_an_offset,
    partitions_without_an_offset_are_listed,
    partitions_come_in_their_own_order,
    a_partition_that_is_unknown_for_a_moment,
    epochs_of_positions_and_commits,
    epochs_of_stored_offsets,
    partitions_without_progress_are_listed,
    so_they_are_by_hand,
    stored_in_on_revoke,
    stored_offsets_are_taken_back,
]


@pytest.mark.parametrize("body", CASES, ids=lambda body: body.__name__)
def test_both_consumers_do_the_same(cluster: MockCluster, body: Case) -> None:
    """A program changes its class, and nothing else."""
    check(body, cluster)


@pytest.mark.parametrize("kind", [Consumer, GroupConsumer])
def test_committed_after_a_call_that_timed_out_is_of_now(cluster: MockCluster, kind: type) -> None:
    """Meanwhile another member may have committed, and a partition that comes back would begin before its offset."""
    bench = Bench(cluster, kind)
    one, _ = bench.joined()
    one.commit(offsets=[at(0, 1)], asynchronous=False)
    for broker in BROKERS:
        cluster.delay(broker, 500)
    with pytest.raises(KafkaException):
        one.committed([at(0)], 0.1)
    for broker in BROKERS:
        cluster.delay(broker, 0)
    one.commit(offsets=[at(0, 2)], asynchronous=False)
    assert plain(one.committed([at(0)], 10)) == plain([at(0, 2)])
    bench.close()


@pytest.mark.parametrize("asynchronous", [True, False])
def test_metadata_that_is_too_long_for_a_request_fails_only_its_own_commit(
    cluster: MockCluster,
    asynchronous: bool,  # noqa: FBT001 -- a case
) -> None:
    """`poll` raised a struct.error of kafka-python instead, and the commits beside it were lost without an answer."""
    codes: list[int | None] = []
    bench = Bench(cluster, GroupConsumer)
    one, _ = bench.joined(on_commit=lambda error, _: codes.append(error and error.code()))
    for offset in (at(0, 5), at(1, 5, metadata="ü" * 2**14), at(2, 5)):
        made = attempt(partial(one.commit, offsets=[offset], asynchronous=asynchronous))
        if not asynchronous:
            codes.append(made.error.args[0].code() if isinstance(made, Raised) else None)
    until = time.monotonic() + 20
    while len(codes) < len(ALL) and time.monotonic() < until:
        one.poll(0.1)
    assert codes == [None, KafkaError.OFFSET_METADATA_TOO_LARGE, None]
    assert plain(one.committed(ALL, 10)) == plain([at(0, 5), at(1), at(2, 5)])
    bench.close()
