"""A client whose polls follow a test's script, and a reader that runs it."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.fleet import FleetTopic, Lane
from assignors.scaling import PollSettings
from spark_sink.fleet import lane_consumer as lane
from spark_sink.fleet.commit_counts import CommitCounts
from spark_sink.fleet.reader_and_writer_threads import SourceReader
from spark_sink.fleet.reader_settings import ReaderParts, ReaderSettings
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.sink.row_options import RowOptions

LANE = Lane("s", 0)


class Record:
    """A record as confluent-kafka hands it over."""

    def __init__(self, topic: str, offset: int, headers: list[tuple[str, bytes | None]] | None = None) -> None:
        self._at = topic, offset
        self._headers = headers

    def error(self) -> None:
        """None of them is one."""

    def topic(self) -> str:
        """Its topic."""
        return self._at[0]

    def partition(self) -> int:
        """Always the first."""
        return 0

    def offset(self) -> int:
        """Its offset."""
        return self._at[1]

    def timestamp(self) -> tuple[int, int]:
        """Of the record's making."""
        return 1, 1_700_000_000_000

    def key(self) -> None:
        """None has one."""

    def value(self) -> bytes:
        """The message of the error."""
        return b"v"

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Its headers."""
        return self._headers


class Client:
    """A consumer whose polls follow a test's script."""

    script: Iterator[Callable[["Client"], list[Record]]]

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.calls: dict[str, Callable[..., None]] = {}
        self.held: dict[str, int] = {}
        self.asked = (0, 0.0)

    def subscribe(self, _topics: list[str], **calls: Callable[..., None]) -> None:
        """Keep the callbacks."""
        self.calls = calls

    def consume(self, most: int, wait_s: float) -> list[Record]:
        """The next thing that happens; nothing once all has."""
        self.asked = most, wait_s
        step = next(type(self).script, None)
        if step is None:
            time.sleep(0.001)
            return []
        return step(self)

    def get_watermark_offsets(self, _partition: KafkaPartition, *, cached: bool) -> tuple[int, int]:
        """Unheard of."""
        assert cached
        return -1001, -1001

    def incremental_assign(self, partitions: list[KafkaPartition]) -> None:
        """Keep."""
        self.held |= {one.topic: one.offset for one in partitions}

    def incremental_unassign(self, partitions: list[KafkaPartition]) -> None:
        """Drop."""
        for one in partitions:
            self.held.pop(one.topic, None)

    def assignment(self) -> list[KafkaPartition]:
        """Return the assignment."""
        return [KafkaPartition(topic, 0) for topic in self.held]

    def commit(self, **_: object) -> None:
        """A hint."""

    def close(self) -> None:
        """Nothing to end."""

    def gain(self, *topics: str) -> None:
        """The group gives partitions."""
        self.calls["on_assign"](self, [KafkaPartition(topic, 0) for topic in topics])

    def revoke(self, *topics: str) -> None:
        """The group takes partitions."""
        self.calls["on_revoke"](self, [KafkaPartition(topic, 0) for topic in topics])


Step = Callable[[Client], list[Record]]
"""What happens during a poll, and the records that it returns."""


def read(  # noqa: PLR0913 -- most tests give two of them
    monkeypatch: pytest.MonkeyPatch,
    table: Path,
    rows: int,
    *script: Step,
    ids: Callable[[], dict[str, str]] = lambda: {"x": "1", "y": "2"},
    buffer_bytes: int = 32 << 20,
    ops: CommitCounts | None = None,
    polls: Callable[[], Mapping[str, PollSettings]] = dict,
    decoded: RowOptions | None = None,
) -> SourceReader:
    """Let a reader go through a script, until so many rows are written."""
    Client.script = iter(script)
    monkeypatch.setattr(lane, "Consumer", Client)
    settings = ReaderSettings(group="g", kafka={"s": {}}, flush_s=0.05, buffer_bytes=buffer_bytes)
    writer = TableWriter(str(table), "g", "a", ops=ops, rows=decoded)
    parts = ReaderParts(writer=writer, ids=lambda _: ids, look_again=lambda: None, ops=ops, polls=polls)
    reader = SourceReader("s", settings, parts)
    reader.assign({LANE: frozenset({FleetTopic("c", "1", "x", "s"), FleetTopic("c", "2", "y", "s")})})
    deadline = time.monotonic() + 20
    while reader.rows_written < rows and time.monotonic() < deadline:
        time.sleep(0.01)
    reader.end()
    reader.join(10)
    return reader


def gains(*topics: str, records: list[Record], held: Mapping[str, int] | None = None) -> Step:
    """Return a step in which the group gives partitions, and the poll returns records.

    Args:
        topics: the topics whose first partitions the group gives.
        records: what the poll returns.
        held: offsets at which the client reads some of them, whatever it was asked for.
    """

    def step(client: Client) -> list[Record]:
        client.gain(*topics)
        client.held |= held or {}
        return records

    return step


def returns(*records: Record) -> Step:
    """Return a step in which the poll returns records, and nothing else happens."""
    return lambda _: list(records)


def once_more(records: list[Record], topic: str = "x") -> Step:
    """Return a step that returns records only when the client was told to begin where its log begins."""

    def step(client: Client) -> list[Record]:
        if client.held.get(topic, 0) >= 0:
            time.sleep(0.01)
            return []
        client.held[topic] = 0
        return records

    return step


def some(topic: str, begin: int, end: int) -> list[Record]:
    """Records of one topic."""
    return [Record(topic, offset) for offset in range(begin, end)]


def pause(_client: Client) -> list[Record]:
    """Nothing comes for longer than a flush's time."""
    time.sleep(0.1)
    return []
