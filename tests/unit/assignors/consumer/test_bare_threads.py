"""Other threads, other processes and the end of a block, as confluent_kafka.Consumer has them."""

import os
import threading
from typing import Any

import pytest

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import Bench, Case, Raised, Servers, at, attempt, check, plain, read


def other_threads_may_call(bench: Bench) -> Any:
    """While one thread polls, another one commits, seeks, pauses, asks and closes."""
    one, found = bench.joined()
    first = next(m for m in found if m.partition() == 0)
    one.pause(one.assignment())
    results: list[Any] = []

    def other() -> None:
        for call in (
            lambda: plain(one.commit(first, asynchronous=False)),
            lambda: one.seek(at(0, 3)),
            lambda: one.pause(one.assignment()),
            lambda: len(one.position(one.assignment())),
            lambda: len(one.committed([at(0)], 10)),
            lambda: one.poll(0),
            one.close,
        ):
            results.append(attempt(call))  # noqa: PERF401 -- one.close ends the other loop

    thread = threading.Thread(target=other)
    polled = [one.poll(0.1)]
    thread.start()
    while thread.is_alive():
        polled.append(attempt(lambda: one.poll(0.05)))
        thread.join(0.005)  # the bare client lets no waiting call in before the next poll of a loop without a pause
    return [results, {message for message in polled if not isinstance(message, Raised)}]


def a_context_manager(bench: Bench) -> Any:
    """It is closed at the end."""
    with bench.make() as one:
        pass
    return attempt(lambda: one.poll(0))


CASES = [
    other_threads_may_call,
    a_context_manager,
]


@pytest.mark.parametrize("body", CASES, ids=lambda body: body.__name__)
def test_both_consumers_do_the_same(cluster: MockCluster, body: Case) -> None:
    """A program changes its class, and nothing else."""
    check(body, cluster)


def fork_and_go_on(cluster: Servers) -> None:
    """Fork a process with a consumer: the child's calls are refused and it ends, and the parent reads on."""
    bench = Bench(cluster, GroupConsumer)
    one, _ = bench.joined(records=10)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        results = [type(attempt(lambda: one.poll(1)).error).__name__, type(attempt(one.assignment).error).__name__]
        one.close()
        os.write(writing, " ".join(results).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    os.close(writing)
    assert os.read(reading, 1000).decode() == "ClosedConsumerError ClosedConsumerError"
    os.close(reading)
    assert len(read(one, 3 * RECORDS - 10)) == 3 * RECORDS - 10
    bench.close()


def test_a_child_process_is_refused_and_ends(cluster: MockCluster) -> None:
    """After a fork no thread of either client runs in the child: it would deliver records twice, or hang."""
    fork_and_go_on(cluster)
