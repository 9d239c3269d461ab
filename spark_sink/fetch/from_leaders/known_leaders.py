"""What a task leaves to the next one of its process: connections to brokers, and the partitions that these lead."""

import os
import time
from collections.abc import Collection
from typing import Final, NamedTuple

from spark_sink.fetch.from_leaders.leader_connection import LeaderConnection
from spark_sink.fetch.from_leaders.metadata_format import Leaders
from spark_sink.ranges.batch_offset import TopicPartition

_KNOWN_S: Final = 300.0  # metadata.max.age.ms of Kafka's own client
_IDLE_S: Final = 60.0  # some networks drop a connection silently after a few minutes
_MOST_KEPT: Final = 8  # queries of one process with different properties


class Lead(NamedTuple):
    """What a broker has reported about itself: it led a partition of this topic id, in this epoch (KIP-320)."""

    broker: int
    epoch: int
    identity: str
    said_at: float


class KnownLeaders:
    """Connections, and what the connected brokers have reported about themselves; used by one task at a time.

    Contract:
    * A broker without an open connection is not known: another one may have its address by now, also one of another
      cluster. So each task asks a bootstrap server for what it does not find here.
    * A task gives it back with `keep` only if each request was answered as expected.
    """

    def __init__(self) -> None:
        self._connections: dict[int, LeaderConnection] = {}
        self._leads: dict[TopicPartition, Lead] = {}

    def lead(self, key: TopicPartition, identity: str) -> Lead | None:
        """Return who leads a partition of the topic with this id, None if that is not known."""
        found = self._leads.get(key)
        if found is None or not identity or found.identity != identity:
            return None
        fresh = time.monotonic() - found.said_at < _KNOWN_S
        return found if fresh and found.broker in self._connections else None

    def address(self, broker: int) -> tuple[str, int]:
        """Return host and port of a broker that `lead` has returned."""
        return self._connections[broker].address

    def confirm(self, broker: int, keys: Collection[TopicPartition], said: Leaders) -> None:
        """Record what a broker says of partitions that were read from it: it leads them, or they are not known."""
        now = time.monotonic()
        for key in keys:
            identity = said.ids.get(key.topic, "")
            if said.leaders.get(key) == broker and identity:
                self._leads[key] = Lead(broker, said.epochs.get(key, -1), identity, now)
            else:
                self._leads.pop(key, None)

    def connect(self, broker: int, address: tuple[str, int], timeout_s: float) -> LeaderConnection:
        """Return the connection to a broker at this address, a new one if there is none.

        Raises:
            OSError: the broker cannot be reached.
        """
        found = self._connections.get(broker)
        if found is None or found.address != address:
            self._drop(broker)
            found = self._connections[broker] = LeaderConnection(address, timeout_s)
        return found

    def close(self) -> None:
        """Close all connections."""
        for broker in list(self._connections):
            self._drop(broker)

    def rest(self) -> None:
        """Forget what is old, at the end of a task."""
        now = time.monotonic()
        self._leads = {key: one for key, one in self._leads.items() if now - one.said_at < _KNOWN_S}

    def resume(self) -> None:
        """Close the connections that should not be used again: closed by the broker, or idle for long."""
        now = time.monotonic()
        for broker, one in list(self._connections.items()):
            if now - one.used_at > _IDLE_S or not one.is_quiet():
                self._drop(broker)

    def _drop(self, broker: int) -> None:
        if (found := self._connections.pop(broker, None)) is not None:
            found.close()


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
    if len(_kept) > _MOST_KEPT and (oldest := _kept.pop(next(iter(_kept)), None)) is not None:
        oldest.close()


def _forget() -> None:
    """Close this process's copies of the parent's connections, which stay open there."""
    for properties in list(_kept):
        if (found := _kept.pop(properties, None)) is not None:
            found.close()


os.register_at_fork(after_in_child=_forget)
