"""Asks for the leaders of partitions as soon as they are read.

Librdkafka itself waits half a second or more before it requests a leader.
"""

import contextlib
import time
from collections.abc import Collection, Iterable
from typing import Final

from confluent_kafka import Consumer, KafkaException

_TIMEOUT_S: Final = 1.0
_ONE_BY_ONE: Final = 8  # metadata of more topics is requested at once, with that of all other topics


def ask_for_leaders(client: Consumer, topics: Collection[str]) -> None:
    """Request the leaders of these topics, for at most a second; without an answer librdkafka asks again."""
    asked: Iterable[dict[str, str]] = ({"topic": topic} for topic in topics) if len(topics) <= _ONE_BY_ONE else [{}]
    until = time.monotonic() + _TIMEOUT_S
    with contextlib.suppress(KafkaException):
        for which in asked:
            if (left_s := until - time.monotonic()) > 0:
                client.list_topics(**which, timeout=left_s)
