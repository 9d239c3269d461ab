"""Waiting for a condition, and never for a time."""

import time
from collections.abc import Callable

from confluent_kafka import KafkaException


def wait_until(true: Callable[[], object], timeout_s: float = 120.0, what: str = "the condition") -> None:
    """Ask until it is true; a broker that is away, or just begins, is asked again."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            if true():
                return
        except KafkaException:
            if time.monotonic() > end:
                raise
        assert time.monotonic() < end, f"{what} did not come true within {timeout_s:g} s"
        time.sleep(0.01)
