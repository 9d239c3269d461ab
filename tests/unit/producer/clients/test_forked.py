"""A process that forks while it holds a producer."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from producer import AZAwareAIOProducer, AZAwareProducer, ForkError
from producer.testing import MockCluster

ROOT = Path(__file__).parents[4]
TOPIC = "flights"
_LONGEST_S = 20


def config(mock: MockCluster) -> dict[str, Any]:
    """Configuration of a producer in az-a."""
    return {"bootstrap.servers": mock.bootstrap_servers, "client.rack": "az-a", "linger.ms": 1, "log_level": 0}


def in_a_fork(task: Callable[[], str]) -> str:
    """Run a function in a forked process, with a time limit, and return its output."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(_LONGEST_S)
        try:
            said = task()
        except BaseException as error:  # noqa: BLE001 - the parent judges
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, "the forked process did not end by itself"
    return said


@pytest.mark.parametrize(
    "use",
    [
        lambda producer: producer.produce(TOPIC, b"v"),
        lambda producer: producer.produce_batch(TOPIC, [{"value": b"v"}]),
        lambda producer: producer.flush(),
        lambda producer: producer.begin_transaction(),
        lambda producer: producer.traffic(),
        lambda producer: producer.close(),
        lambda producer: producer.__enter__(),
        len,
    ],
    ids=["produce", "produce_batch", "flush", "begin_transaction", "traffic", "close", "with", "len"],
)
def test_a_forked_process_is_told_and_the_parent_goes_on(
    mock: MockCluster, use: Callable[[AZAwareProducer], object]
) -> None:
    """One error that names both processes and the way out, where a bare producer queues records and sends none."""
    mock.create(TOPIC, [1, 2, 3])
    producer = AZAwareProducer(config(mock))
    producer.produce(TOPIC, b"v")
    said = in_a_fork(lambda: str(use(producer)))
    assert said.startswith(f"ForkError: AZAwareProducer: made before process {os.getpid()} forked process ")
    assert said.endswith("make a producer in each process")
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    assert producer.traffic().local.records == 2
    producer.close()


def made_after_a_fork(settings: dict[str, Any]) -> str:
    """Create a producer in a forked process that inherited another one, whose threads held no lock at the fork."""
    inherited = [AZAwareProducer(settings)]
    inherited[0].produce(TOPIC, b"v")
    inherited[0].flush(10)

    def task() -> str:
        inherited.clear()
        with AZAwareProducer(settings) as own:
            own.produce(TOPIC, b"v")
            return f"{own.flush(10)} left, {own.traffic().local.records} local"

    said = in_a_fork(task)
    inherited[0].close()
    return said


def test_a_producer_that_is_made_after_the_fork_works(mock: MockCluster) -> None:
    """The way out that the error names; the inherited one is let go without a word.

    In a fresh process: where clients of other tests are just ending, librdkafka's one lock may be held at the fork.
    """
    mock.create(TOPIC, [1, 2, 3])
    code = "import json, sys; from tests.unit.producer.clients import test_forked as here; "
    code += "print(here.made_after_a_fork(json.loads(sys.argv[1])))"
    command = [sys.executable, "-c", code, json.dumps(config(mock))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert done.stdout.strip() == "0 left, 1 local", done.stderr


def test_the_asyncio_client_refuses_too(mock: MockCluster) -> None:
    """At the call, before anything is awaited."""
    mock.create(TOPIC, [1])

    async def run() -> str:
        async with AZAwareAIOProducer(config(mock)) as producer:

            def task() -> str:
                producer.produce(TOPIC, b"v").close()
                return "no error"

            return in_a_fork(task)

    assert asyncio.run(run()).startswith("ForkError: AZAwareAIOProducer: ")


def test_a_stand_in_is_still_the_class_that_it_was(mock: MockCluster) -> None:
    """`isinstance` and error handlers of an application continue to work, also for a subclass."""
    mock.create(TOPIC, [1])

    class Own(AZAwareProducer):
        def send(self) -> None:
            self.produce(TOPIC, b"v")

    producer = Own(config(mock))

    def task() -> str:
        assert isinstance(producer, Own)
        assert isinstance(producer, Producer)
        with pytest.raises(ForkError):
            producer.send()
        return "refused"

    assert in_a_fork(task) == "refused"
    producer.close()


def test_a_subclass_may_compare_its_producers(mock: MockCluster) -> None:
    """A class with `__eq__` has no hash, and the producer could not be created."""

    class Comparing(AZAwareProducer):
        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = None  # type: ignore[assignment]

    producer = Comparing(config(mock))
    assert in_a_fork(lambda: str(producer.produce(TOPIC, b"v"))).startswith("ForkError")
    producer.close()
