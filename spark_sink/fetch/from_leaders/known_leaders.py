"""What a task leaves to the next one of its process: the leaders of topics, and connections to brokers."""

import contextlib
import os
import time
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from spark_sink.fetch.from_leaders.leader_connection import LeaderConnection
from spark_sink.fetch.from_leaders.metadata_format import Leaders
from spark_sink.ranges.batch_offset import TopicPartition

_KNOWN_S: Final = 300.0  # metadata.max.age.ms of Kafka's own client
_IDLE_S: Final = 60.0  # some networks drop a connection silently after a few minutes


class _Topic(NamedTuple):
    """The brokers that lead a topic's partitions, and its id, empty if that is not known."""

    learned_at: float
    identity: str
    leaders: dict[int, int]


class KnownLeaders:
    """Leaders, and connections that are used by one task at a time.

    Contract: a task whose every request was answered as expected gives it back with `keep`; after any surprise the next
    task asks again. A connection that the broker has closed since is not used.

    Attributes:
        brokers: host and port by id.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, tuple[str, int]] = {}
        self._topics: dict[str, _Topic] = {}
        self._connections: dict[int, LeaderConnection] = {}
        self._used_at = time.monotonic()

    def knows(self, key: TopicPartition, identity: str) -> bool:
        """Return whether the leader of a partition was learned not long ago, and of a topic with this id.

        A topic that was deleted and recreated has other leaders, and a broker that has not noticed may answer with
        records of the old one.
        """
        found = self._topics.get(key.topic)
        if found is None or not identity or found.identity != identity:
            return False
        return time.monotonic() - found.learned_at < _KNOWN_S and self.leader(key) is not None

    def leader(self, key: TopicPartition) -> int | None:
        """Return the broker that leads a partition as far as is known, else None."""
        found = self._topics.get(key.topic)
        number = None if found is None else found.leaders.get(key.partition)
        return number if number in self.brokers else None

    def learn(self, topics: Iterable[str], found: Leaders) -> None:
        """Replace what is known of these topics."""
        self.brokers = dict(found.brokers)
        now = time.monotonic()
        self._topics |= {topic: _Topic(now, found.ids.get(topic, ""), {}) for topic in topics}
        for key, number in found.leaders.items():
            if key.topic in self._topics:
                self._topics[key.topic].leaders[key.partition] = number

    def connection(self, number: int, timeout_s: float) -> LeaderConnection:
        """Return a connection to a broker.

        Raises:
            OSError: the broker cannot be reached.
        """
        address = self.brokers[number]
        found = self._connections.get(number)
        if found is None or found.address != address:
            self.drop(number)
            found = self._connections[number] = LeaderConnection(address, timeout_s)
        return found

    def connected(self) -> Collection[int]:
        """List the brokers with a connection."""
        return list(self._connections)

    def drop(self, number: int) -> None:
        """Close the connection to a broker."""
        if (found := self._connections.pop(number, None)) is not None:
            found.close()

    def close(self) -> None:
        """Close all connections."""
        for number in self.connected():
            self.drop(number)

    def rest(self) -> None:
        """Record that the task ends."""
        self._used_at = time.monotonic()

    def resume(self) -> None:
        """Close the connections that should not be used again."""
        old = time.monotonic() - self._used_at > _IDLE_S
        for number in [one for one, connection in self._connections.items() if old or not connection.is_quiet()]:
            self.drop(number)


_kept: dict[str, KnownLeaders] = {}  # of this process, by the properties of the tasks


def take(properties: str) -> KnownLeaders:
    """Return what an earlier task with these properties has left; only the caller has it from now on."""
    found = _kept.pop(properties, None)
    if found is None:
        return KnownLeaders()
    found.resume()
    return found


def keep(properties: str, known: KnownLeaders) -> None:
    """Leave it to the next task with these properties."""
    known.rest()
    if (other := _kept.pop(properties, None)) is not None:  # of a task that ran at the same time
        other.close()
    _kept[properties] = known


def _forget() -> None:
    """Close this process's copies of the parent's connections, which stay open there."""
    while _kept:
        with contextlib.suppress(KeyError):
            _kept.popitem()[1].close()


os.register_at_fork(after_in_child=_forget)
