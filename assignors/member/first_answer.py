"""Waits for the first answer of a broker, before a member joins."""

import time
from typing import Final

from confluent_kafka import Consumer, KafkaException

from assignors.member.broker_assigned_errors import is_passing

_PAUSE_S: Final = 0.1


def wait_for_broker(consumer: Consumer, timeout_s: float) -> None:
    """Wait until a broker answers; a connection that breaks, as when a broker restarts, is not an answer.

    Raises:
        KafkaException: none has answered in time, or one refuses.
    """
    until = time.monotonic() + timeout_s
    while True:
        try:
            consumer.list_topics(timeout=max(until - time.monotonic(), _PAUSE_S))
        except KafkaException as error:
            if time.monotonic() > until or not is_passing(error.args[0]):
                raise
            time.sleep(_PAUSE_S)
        else:
            return
