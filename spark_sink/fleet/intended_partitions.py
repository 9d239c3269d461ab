"""The partitions that a lane should read, compared with those that its client has. Pure.

A change of the assignment is several calls of the client. If one of them fails, the client is left with other
partitions than intended, and no later call would correct it.
"""

from collections.abc import Iterable

from confluent_kafka import TopicPartition as KafkaPartition

Numbered = tuple[str, int]
"""Topic's name and partition."""


class IntendedPartitions:
    """The partitions that the seats or the group give to a lane; used by one thread."""

    def __init__(self) -> None:
        self._keys: set[Numbered] = set()

    def replace(self, keys: Iterable[Numbered]) -> None:
        """Read exactly these."""
        self._keys = set(keys)

    def add(self, partitions: Iterable[KafkaPartition]) -> None:
        """Read these as well."""
        self._keys |= {(one.topic, one.partition) for one in partitions}

    def remove(self, partitions: Iterable[KafkaPartition]) -> None:
        """Read these no longer."""
        self._keys -= {(one.topic, one.partition) for one in partitions}

    def differences(self, assigned: Iterable[KafkaPartition]) -> tuple[list[KafkaPartition], list[KafkaPartition]]:
        """Return the partitions that the client lacks, and those that it should not have, sorted."""
        held = {(one.topic, one.partition) for one in assigned}
        missing, surplus = sorted(self._keys - held), sorted(held - self._keys)
        return [KafkaPartition(*key) for key in missing], [KafkaPartition(*key) for key in surplus]
