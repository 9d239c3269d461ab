"""Waits for a condition, never for a fixed time."""

import time
from collections.abc import Callable

from confluent_kafka import KafkaException


def wait_until(
    true: Callable[[], object], timeout_s: float = 120.0, what: str | Callable[[], str] = "the condition"
) -> None:
    """Check until it is true; errors of a broker that is away or starting are retried.

    `what` names the condition in the failure; a function is called only then, to say what is missing.
    """
    end = time.monotonic() + timeout_s
    while True:
        try:
            if true():
                return
        except KafkaException:
            if time.monotonic() > end:
                raise
        assert time.monotonic() < end, (
            f"{what if isinstance(what, str) else what()} did not come true within {timeout_s:g} s"
        )
        time.sleep(0.01)
