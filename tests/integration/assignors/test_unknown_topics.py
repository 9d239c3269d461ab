"""Errors of topics that real brokers do not have, as both consumers report them."""

import time
import uuid
from typing import Any

import pytest

from spark_sink.demo.cluster import Cluster
from tests.unit.assignors.consumer.bare_bench import Bench, check

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_name_without_a_topic_is_an_error_of_that_topic(cluster: Cluster, protocol: str) -> None:
    """Alone in the subscription it is asked for by name, and must be neither created nor waited for in silence.

    Where the broker assigns, both consumers wait in silence.
    """
    name = f"unknown-{uuid.uuid4().hex[:6]}"

    def case(bench: Bench) -> Any:
        one = bench.make()
        one.subscribe([name])
        until = time.monotonic() + 20
        while time.monotonic() < until:
            message = one.poll(0.1)
            if message is not None:
                return [message.topic(), message.error().code(), name in one.list_topics(timeout=10).topics]
        return "nothing"

    check(case, cluster, protocol)
