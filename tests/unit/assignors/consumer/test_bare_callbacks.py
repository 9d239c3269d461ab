"""Callbacks and errors of topics, as confluent_kafka.Consumer passes them to its program."""

import logging
import time
from typing import Any

import pytest

from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import (
    COOPERATIVE,
    SHORT,
    Bench,
    Case,
    Raised,
    attempt,
    check,
    messages,
    plain,
    read,
)

pytestmark = pytest.mark.long


def callbacks_of_a_subscription(bench: Bench) -> Any:
    """Assigned in any order, revoked by unsubscribe, and both again by close; a commit in on_revoke is kept."""
    seen: list[Any] = []

    def revoked(one: Any, partitions: Any) -> None:
        seen.append(("revoked", plain(partitions)[0][2] > 0, plain(one.commit(asynchronous=False))))

    one, _ = bench.joined(
        on_assign=lambda _, p: seen.append(("assigned", sorted(plain(p)))), on_revoke=revoked, **SHORT
    )
    one.unsubscribe()
    one.poll(0.05)
    seen.append(len(one.assignment()))
    one.subscribe(["t"], on_assign=lambda _, p: seen.append(("again", len(p))))
    while not one.assignment():
        one.poll(0.05)
    one.close()
    return [entry if entry[0] != "revoked" else ("revoked", entry[2]) for entry in seen if isinstance(entry, tuple)]


def a_callback_that_raises(bench: Bench) -> Any:
    """Its error comes out of poll, and the partitions are read all the same; in close, out of close."""

    def broken(*_: object) -> None:
        raise LookupError

    one = bench.make()
    one.subscribe(["t"], on_assign=broken, on_revoke=broken)
    results: list[Any] = []
    for _ in range(200):
        result = attempt(lambda: one.poll(0.05))
        results += [result] if isinstance(result, Raised) else ["record"] if result is not None else []
        if "record" in results:
            break
    return [results, attempt(one.close), attempt(one.close), attempt(lambda: one.poll(0))]


def a_callback_that_exits(bench: Bench) -> Any:
    """sys.exit() in a callback comes out of poll, and the consumer can be closed."""

    def leave(*_: object) -> None:
        raise SystemExit(3)

    one = bench.make()
    one.subscribe(["t"], on_assign=leave)
    try:
        for _ in range(200):
            one.poll(0.05)
    except SystemExit as error:
        return [error.code, one.close()]
    return "never"


def on_assign_says_where_to_begin(bench: Bench) -> Any:
    """assign() with offsets, in the callback."""

    def begin(one: Any, partitions: Any) -> None:
        for partition in partitions:
            partition.offset = 45
        one.assign(partitions)

    one = bench.make()
    one.subscribe(["t"], on_assign=begin)
    return read(one, 15)


def errors_of_topics_are_messages(bench: Bench) -> Any:
    """Unknown, without rights, and a pattern without a topic, each once; records of others are delivered."""
    one = bench.make(**SHORT)
    one.subscribe(["t", "nosuch", "^zz"])
    found = messages(one, errors=2, records=3 * RECORDS)
    one.subscribe(["secret"])
    return [found, messages(one, errors=1, records=0)]


def a_name_that_no_topic_can_have(bench: Bench) -> Any:
    """An error of that topic; the others are read. The code is the broker's; the mock calls the name unknown."""
    one = bench.make()
    one.subscribe(["t", "bad topic"])
    return [(topic, text and len(text) > 0) for topic, _, text in messages(one, errors=1, records=3 * RECORDS)]


def a_logger(bench: Bench) -> Any:
    """Librdkafka logs to it."""
    seen: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())

    logger = logging.Logger("test")  # noqa: LOG001 -- no part of the tree of loggers
    logger.addHandler(Kept())
    one = bench.make(debug="cgrp", log_level=7, logger=logger)
    one.subscribe(["t"])
    until = time.monotonic() + 10
    while not seen and time.monotonic() < until:
        one.poll(0.05)
    return bool(seen)


def statistics_reach_their_callback(bench: Bench) -> Any:
    """stats_cb is called in poll."""
    seen: list[str] = []
    one = bench.make(**{"statistics.interval.ms": 50, "stats_cb": seen.append})
    until = time.monotonic() + 10
    while not seen and time.monotonic() < until:
        one.poll(0.05)
    return bool(seen)


def a_member_without_partitions(bench: Bench, **more: Any) -> Any:
    """Four members read three partitions: what the idle one hears, to its end."""
    group, heard = f"idle-{bench.kind.__name__}-{time.monotonic()}", {}
    for _ in range(4):
        one = bench.make(**{"group.id": group}, **SHORT, **more)
        heard[one] = rebalances(one)
    until = time.monotonic() + 40
    said, since = -1, time.monotonic()
    # The idle one closes when no further rebalance is under way: no member has heard of one for ten heartbeats.
    while (
        not (idle := one_idle(heard))
        or not (heard[idle] or bench.protocol == "consumer")
        or time.monotonic() < since + 1
    ):
        assert time.monotonic() < until, list(heard.values())
        for one in heard:
            one.poll(0.02)
        if said != (said := sum(map(len, heard.values()))):
            since = time.monotonic()
    idle.close()
    return list(dict.fromkeys(heard[idle][-2:]))


def a_cooperative_member_without_partitions(bench: Bench) -> Any:
    """It has no assignment to give up."""
    return a_member_without_partitions(bench, **COOPERATIVE)


def a_member_that_gives_up_one_partition(bench: Bench, **more: Any) -> Any:
    """What the first member hears, each once, until the second one has a partition."""
    group = f"two-{bench.kind.__name__}-{time.monotonic()}"
    first, second = (bench.make(**{"group.id": group}, **SHORT, **more) for _ in range(2))
    heard = rebalances(first)
    until = time.monotonic() + 40
    while not first.assignment():
        first.poll(0.05)
    rebalances(second)
    while not second.assignment() or heard[-1][0] == "revoked":
        assert time.monotonic() < until, heard
        first.poll(0.05)
        second.poll(0.05)
    return list(dict.fromkeys((kind, count > 0) for kind, count in heard))


def a_cooperative_member_that_gives_up_one_partition(bench: Bench) -> Any:
    """It hears of an assignment without partitions after that."""
    return a_member_that_gives_up_one_partition(bench, **COOPERATIVE)


def rebalances(one: Any) -> list[tuple[str, int]]:
    """Subscribe; the list gets each rebalance, and its number of partitions."""
    heard: list[tuple[str, int]] = []
    one.subscribe(
        ["t"],
        on_assign=lambda _, found: heard.append(("assigned", len(found))),
        on_revoke=lambda _, found: heard.append(("revoked", len(found))),
    )
    return heard


def one_idle(members: Any) -> Any:
    """The member without a partition, once each other one has one."""
    owned = {one: len(one.assignment()) for one in members}
    return next(one for one in members if not owned[one]) if sorted(owned.values()) == [0, 1, 1, 1] else None


CASES = [
    a_member_without_partitions,
    a_cooperative_member_without_partitions,
    a_member_that_gives_up_one_partition,
    a_cooperative_member_that_gives_up_one_partition,
    callbacks_of_a_subscription,
    a_callback_that_raises,
    a_callback_that_exits,
    on_assign_says_where_to_begin,
    errors_of_topics_are_messages,
    a_name_that_no_topic_can_have,
    a_logger,
    statistics_reach_their_callback,
]


@pytest.mark.parametrize("body", CASES, ids=lambda body: body.__name__)
def test_both_consumers_do_the_same(cluster: MockCluster, body: Case) -> None:
    """A program changes its class, and nothing else."""
    check(body, cluster)
