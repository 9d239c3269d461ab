"""Reads and writes the pauses of a cluster."""

from collections.abc import Mapping
from typing import Any, Final

from assignors.clients.compacted_topic import CompactedFeed, CompactedPublisher, TableTopic
from assignors.errors import PauseError
from assignors.pauses.pause_records import TOPIC, Pause, PausedTopic, decode, decode_key, encode, encode_key

_HELD: Final = TableTopic(
    noun="pauses topic", client="pause", key=decode_key, record=decode, failure=PauseError, refusal=PauseError
)


class PausesFeed(CompactedFeed[PausedTopic, Pause]):
    """The current pauses of a cluster, read without a consumer group.

    Contract: as `CompactedFeed`.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.

    Raises:
        PauseError: a property is invalid.
    """

    def __init__(self, kafka: Mapping[str, Any]) -> None:
        super().__init__(kafka, TOPIC, _HELD)

    def paused(self, group: str) -> dict[str, Pause]:
        """Return the pauses of a group, by topic."""
        return {name.topic: pause for name, pause in self.records.items() if name.group == group}


class PausesPublisher(CompactedPublisher[PausedTopic, Pause]):
    """Pauses and resumes topics; creates the topic of the pauses if it does not exist.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.

    Raises:
        PauseError: a property is invalid, no broker answers, or the topic cannot be created.
    """

    def __init__(self, kafka: Mapping[str, Any]) -> None:
        super().__init__(kafka, TOPIC, _HELD)

    def publish(self, name: PausedTopic, pause: Pause | None) -> None:
        """Pause a topic, or resume it with None.

        Raises:
            PauseError: the record did not arrive.
        """
        self.write(encode_key(name), None if pause is None else encode(pause), f"{name.topic}: its pause")
