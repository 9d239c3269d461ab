"""Errors of the group, which reach the program as messages while the member tries again."""

from collections.abc import Callable
from functools import partial

import kafka.errors
from confluent_kafka import KafkaError, Message

from assignors.member.fatal_errors import OnRefused


def refusals_as_messages(add: Callable[[Message], object]) -> OnRefused:
    """Return a member's `on_refused` that passes librdkafka's message for each error to `add`."""
    return partial(_pass_on, add)


def _pass_on(add: Callable[[Message], object], error: kafka.errors.KafkaError, finding: bool) -> None:  # noqa: FBT001 -- as the member calls it
    # The client that fetches looks for the coordinator, too, and its message comes among the records.
    if not finding:
        code = int(getattr(error, "errno", KafkaError.UNKNOWN))
        text = f"JoinGroup failed: {KafkaError(code).str()}"
        add(Message(partition=0, value=text.encode(), error=KafkaError(code, text)))
