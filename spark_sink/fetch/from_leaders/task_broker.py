"""What a task asks of one broker, and what that broker has answered."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_sink.fetch.from_leaders.fetch_format import (
    Answered,
    Ids,
    Wanted,
    fetch_request,
    parse_fetch,
    parse_versions,
    versions_request,
)
from spark_sink.fetch.from_leaders.leader_connection import LeaderConnection
from spark_sink.fetch.from_leaders.metadata_format import metadata_request
from spark_sink.fetch.from_leaders.wire_format import WireError
from spark_sink.ranges.batch_offset import TopicPartition


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What each request of a task says.

    Attributes:
        client: `client.id`.
        rack: `client.rack`, empty for none.
        committed: leave out records of open transactions.
        wait_ms: the broker's longest wait for a first byte.
        most: bytes of a response.
    """

    client: str
    rack: str
    committed: bool
    wait_ms: int
    most: int


@dataclass(slots=True)
class TaskBroker:
    """A broker of a task.

    A new connection is asked first whether its broker reads topics by their ids. If it does not, or if the id of a
    topic is not known, topics are read by their names.

    Attributes:
        number: its id.
        address: host and port.
        keys: the partitions that are read from it, in the order of the next request.
        connection: None before the first request.
        alive: whether the connection is new, or has brought an answer to this task.
        asked: whether a request has no answer yet.
        empty: answers in a row without a record.
        read: partitions of which it has sent records.
        read_by_name: those of `read` whose topic may have been another one with the same name.
    """

    number: int
    address: tuple[str, int]
    keys: deque[TopicPartition] = field(default_factory=deque)
    connection: LeaderConnection | None = None
    alive: bool = False
    asked: bool = False
    empty: int = 0
    read: set[TopicPartition] = field(default_factory=set)
    read_by_name: set[TopicPartition] = field(default_factory=set)
    _asked_versions: bool = False
    _ids: Ids | None = None  # of the topics in the last request and others, None if it has names

    def ask(self, connection: LeaderConnection, wanted: list[Wanted], ids: Ids, limits: FetchLimits) -> None:
        """Send the next request.

        Raises:
            OSError: the connection is lost.
        """
        by_id = all(one.key.topic in ids for one in wanted)
        number = connection.next_number()
        self.connection = connection
        self._asked_versions = by_id and connection.by_id is None
        if self._asked_versions:
            connection.send(versions_request(number, limits.client))
        else:
            self._ids = ids if by_id and connection.by_id else None
            connection.send(
                fetch_request(
                    number,
                    limits.client,
                    wanted,
                    wait_ms=limits.wait_ms,
                    most=limits.most,
                    committed=limits.committed,
                    rack=limits.rack,
                    ids=self._ids,
                )
            )
        self.asked = True

    def take(self, response: memoryview) -> list[Answered] | None:
        """Return the partitions of a response to the last request, None if that asked for no records.

        Raises:
            WireError: it is not one.
        """
        self.asked, self.alive = False, True
        if self._asked_versions:
            assert self.connection is not None  # noqa: S101 -- it was asked
            self.connection.by_id = parse_versions(response)
            return None
        answers, asked = parse_fetch(response, self._ids), set(self.keys)
        for one in answers:
            if one.key not in asked:
                raise WireError(f"the broker answers for {one.key}, which was not asked")
            asked.remove(one.key)
        return answers

    def note_read(self, key: TopicPartition) -> None:
        """Record that the last response had records of a partition."""
        self.read.add(key)
        if self._ids is None:
            self.read_by_name.add(key)

    def ask_metadata(self, client: str, identities: Mapping[str, str]) -> LeaderConnection | None:
        """Ask for the ids and leaders of what was read by name; None if there is nothing to ask.

        Raises:
            OSError: the connection is lost.
        """
        topics = sorted({key.topic for key in self.read_by_name if identities.get(key.topic)})
        if not topics or self.connection is None:
            return None
        self.connection.send(metadata_request(self.connection.next_number(), client, topics, ids=True))
        return self.connection
