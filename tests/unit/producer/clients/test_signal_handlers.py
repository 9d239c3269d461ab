"""Signal handlers that use a producer while the main thread is inside one of its methods.

Python runs a handler between two steps of the main thread, which may hold a lock at this moment. Here a trace function
takes the handler's place at every line of the producer's code, so that each such moment is met.
"""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import producer as package
from producer import AZAwareProducer
from producer.clients.wake_up import WakeUp
from producer.partitioning import produce_interpreted
from producer.testing import MockCluster

ROOT = Path(__file__).parents[4]
HERE = str(Path(package.__file__).parent)
TOPIC = "flights"
_LONGEST_S = 30


def at_each_line(handler: Callable[[], object], task: Callable[[], object]) -> int:
    """Run a task, and call the handler before each line of this package in the main thread; return the calls."""
    calls = 0
    inside = False

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal calls, inside
        if inside or not frame.f_code.co_filename.startswith(HERE):
            return None if inside else trace
        if event == "line":
            inside = True
            calls += 1
            handler()
            inside = False
        return trace

    sys.settrace(trace)
    try:
        task()
    finally:
        sys.settrace(None)
    return calls


def use(path: str) -> None:
    """Let each method of a handler interrupt each method of the main thread; a deadlock ends the process."""
    signal.alarm(_LONGEST_S)
    if path == "interpreted":
        AZAwareProducer._kafka_azimuth_hot = produce_interpreted
        AZAwareProducer.produce = produce_interpreted.produce
    sent = 0
    with MockCluster() as mock:
        mock.create(TOPIC, [1, 2, 3])
        settings = {"bootstrap.servers": mock.bootstrap_servers, "client.rack": "az-a", "log_level": 0, "linger.ms": 1}
        producer = AZAwareProducer({**settings, "statistics.interval.ms": 10})
        producer.produce(TOPIC, b"v")
        sent += 1

        def explicit() -> None:
            nonlocal sent
            producer.produce(TOPIC, b"v", partition=1)
            sent += 1

        def new_key() -> None:
            nonlocal sent
            producer.produce(TOPIC, b"v", str(sent).encode())
            sent += 1

        def reports() -> None:
            for _ in range(3):
                producer.poll(0.05)

        tasks = (explicit, new_key, reports, producer.traffic, producer.refresh_leaders)
        for handler in (explicit, new_key, producer.traffic, producer.refresh_leaders):
            for task in tasks:
                at_each_line(handler, task)
        left = producer.flush(20)
        traffic = producer.traffic()
        total = sum(one.records for one in traffic.topics.values())
        producer.close()
    sys.stdout.write(f"{left} left, {total - sent} miscounted")


@pytest.mark.parametrize("path", ["compiled", "interpreted"])
def test_a_signal_handler_may_use_a_producer_at_any_moment(path: str) -> None:
    """No deadlock with the thread that it interrupts, and no record is lost from the counts."""
    if path == "compiled" and not AZAwareProducer.compiled:
        pytest.skip("built without a C compiler")
    code = f"from tests.unit.producer.clients.test_signal_handlers import use; use({path!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=2 * _LONGEST_S, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == (0, "0 left, 0 miscounted"), done.stderr[-2000:]


def test_a_request_to_wake_up_is_taken_once_and_kept_until_then() -> None:
    """As an event that its waiter clears: many requests wake up once, and none is lost before the wait."""
    wake = WakeUp()
    wake.wait(0.001)
    assert not wake.is_set()
    for _ in range(3):
        wake.set()
    assert wake.is_set()
    wake.wait(1_000)
    assert not wake.is_set()
