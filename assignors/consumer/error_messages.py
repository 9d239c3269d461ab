"""Errors that reach the program as messages: of subscribed topics, and of the group while the member tries again."""

from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

import kafka.errors
from confluent_kafka import KafkaError, Message

from assignors.clients.topic_names import is_topic_name
from assignors.consumer.subscription import Subscription
from assignors.member.fatal_errors import OnRefused

_NONE: Final = Subscription((), ())


class TopicErrors:
    """Compares a subscription with the topics that the brokers list.

    Contract: as in librdkafka, an error is delivered once, and again only after the topic existed or had another error.
    The member's thread calls `update`, the program's thread calls all other methods.

    Args:
        notify: called when there is an error to deliver.
        eager: whether the member gives up all its partitions in each rebalance: none is lost with its topic.
    """

    def __init__(self, notify: Callable[[], object], *, eager: bool = False) -> None:
        self._notify = notify
        self._eager = eager
        self._subscription = _NONE
        self._reported: dict[str, int] = {}
        self._seen: set[str] = set()  # topics that a pattern has matched so far
        self._waiting: deque[Message] = deque()
        self._refused = False

    def subscribe(self, subscription: Subscription) -> None:
        """Replace the subscription."""
        self._subscription = subscription
        self._reported = {}
        self._seen = set()
        self._waiting.clear()
        self._refused = False

    def update(self, known: Collection[str], unauthorized: Collection[str]) -> None:
        """Compare with the brokers' list of topics, and with the topics that this client may not read."""
        found: dict[str, int] = {}
        matches = self._subscription.matches(known)
        for name in (one for one, topics in matches.items() if not topics):
            found[name] = KafkaError.UNKNOWN_TOPIC_OR_PART
            if name in unauthorized:
                found[name] = KafkaError.TOPIC_AUTHORIZATION_FAILED
            elif name[0] != "^" and not is_topic_name(name):
                found[name] = KafkaError.TOPIC_EXCEPTION
        found |= dict.fromkeys(self._seen.difference(known), KafkaError.UNKNOWN_TOPIC_OR_PART)
        self._seen.update(*(topics for one, topics in matches.items() if one[0] == "^"))
        new = [(name, code) for name, code in found.items() if self._reported.get(name) != code]
        self._reported = found
        if new:
            self._waiting.extend(_message(name, code) for name, code in new)
            self._notify()

    def loses(self, topic: str) -> bool:
        """Whether partitions of this topic are lost, because the brokers no longer have it; in any thread."""
        return not self._eager and self._reported.get(topic) == KafkaError.UNKNOWN_TOPIC_OR_PART

    def add(self, message: Message) -> None:
        """Deliver an error of librdkafka, which compares the subscription itself, or one of the group."""
        self._waiting.append(message)
        self._notify()

    def add_refusal(self, message: Message) -> None:
        """Deliver an error that each new member meets, once until `accepted`."""
        if not self._refused:
            self._refused = True
            self.add(message)

    def add_end(self, end: str) -> None:
        """Deliver the error with which each new member ends, once until `accepted`."""
        text = f"Membership ended: {end}".encode(errors="replace")
        error = KafkaError(KafkaError._APPLICATION, text.decode())  # noqa: SLF001 -- librdkafka's own code
        self.add_refusal(Message(partition=0, value=text, error=error))

    def accepted(self) -> None:
        """Note that the group has accepted the member."""
        self._refused = False

    def take(self) -> list[Message]:
        """Return the errors that the program has not seen."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]


def _message(topic: str, code: int) -> Message:
    text = f"Subscribed topic not available: {topic}: {KafkaError(code).str()}"
    return Message(topic=topic, partition=0, value=text.encode(), error=KafkaError(code, text))


def refusals_as_messages(add: Callable[[Message], object]) -> OnRefused:
    """Return a member's `on_refused` that passes librdkafka's message for each error to `add`."""
    return partial(_pass_on, add)


def _pass_on(add: Callable[[Message], object], error: kafka.errors.KafkaError, finding: bool) -> None:  # noqa: FBT001 -- as the member calls it
    # The client that fetches looks for the coordinator, too, and its message comes among the records.
    if not finding:
        code = int(getattr(error, "errno", KafkaError.UNKNOWN))
        text = f"JoinGroup failed: {KafkaError(code).str()}"
        add(Message(partition=0, value=text.encode(), error=KafkaError(code, text)))
