"""Real signals at random moments of a consumer's life, with real members in both protocols."""

import contextlib
import random
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Message

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.records import offsets
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.alarms import handling_alarms
from tests.unit.assignors.consumer.bare_bench import SHORT, Bench, at, plain
from tests.unit.assignors.consumer.interruption_points import Interruption

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]


@contextlib.contextmanager
def signals() -> Iterator[Callable[[float], None]]:
    """A function that lets a handler raise after so many seconds."""

    def interrupt(*_: object) -> None:
        raise Interruption

    with handling_alarms(interrupt):
        yield lambda after_s: signal.setitimer(signal.ITIMER_REAL, after_s) and None


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("seed", range(8))
def test_signals_lose_and_repeat_nothing(cluster: MockCluster, protocol: str, seed: int) -> None:
    """Each partition is assigned and revoked once, each record delivered once, and all of them are committed."""
    rng = random.Random(seed)
    bench = Bench(cluster, GroupConsumer, protocol)
    group = f"signals-{protocol}-{time.monotonic()}"
    config: dict[str, Any] = {"group.id": group, "enable.auto.commit": True, "auto.commit.interval.ms": 50, **SHORT}
    one = bench.make(**config)
    seen: list[tuple[str, int]] = []

    def note(what: str) -> Callable[[Any, list[Any]], None]:
        # In one call in C: a signal may come inside the callback, which then has been called all the same.
        return lambda _, partitions: seen.extend([(what, each.partition) for each in partitions])

    one.subscribe(["t"], note("assigned"), note("revoked"), note("lost"))
    found: list[Message] = []
    until = time.monotonic() + 60
    inside = calls = 0
    with signals() as after:
        while len(found) < 3 * RECORDS:
            assert time.monotonic() < until, (offsets(found), seen)
            calls += 1
            if calls <= 5 or rng.random() < 0.25:  # a call that is interrupted fetches its records again
                after(rng.uniform(0.0001, 0.04))
            try:
                found += one.consume(7, 0.05)
            except Interruption:
                inside += 1
            try:
                after(0)
            except Interruption:  # it came after the call
                inside += 1
        for _ in range(3):
            try:
                after(rng.uniform(0.0001, 0.02))
                one.close()
            except Interruption:
                inside += 1
    one.close()
    assert offsets(found) == {number: list(range(RECORDS)) for number in range(3)}
    assert sorted(seen) == [(what, number) for what in ("assigned", "revoked") for number in range(3)]
    assert inside
    committed = plain(bench.make(**{"group.id": group}).committed([at(0), at(1), at(2)], 10))
    assert [offset for _, _, offset, _ in committed] == [RECORDS] * 3
    bench.close()
