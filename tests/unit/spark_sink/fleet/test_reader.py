"""Light ingestion against a client that behaves as brokers make it behave, into a real table."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.fleet import FleetTopic, Lane
from spark_sink import positions
from spark_sink._errors import TableError
from spark_sink._offsets import Range, TopicPartition
from spark_sink._table import DataFile
from spark_sink._verify import verify
from spark_sink.fleet import _lane, _reader
from spark_sink.fleet._lane import LaneConsumer, LaneParts
from spark_sink.fleet._reader import ReaderParts, ReaderSettings, SourceReader
from spark_sink.fleet._writer import Rows, TableWriter

LANE = Lane("s", 0)


class Record:
    """A record as confluent-kafka hands it over."""

    def __init__(self, topic: str, offset: int) -> None:
        self._at = topic, offset

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
        """What it says."""
        return b"v"


class Client:
    """A consumer whose polls do what a test wrote down."""

    script: Iterator[Callable[["Client"], list[Record]]]

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.calls: dict[str, Callable[..., None]] = {}
        self.held: dict[str, int] = {}

    def subscribe(self, _topics: list[str], **calls: Callable[..., None]) -> None:
        """Keep the callbacks."""
        self.calls = calls

    def consume(self, _most: int, _wait_s: float) -> list[Record]:
        """The next thing that happens; nothing once all has."""
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
        """What is held."""
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


def read(
    monkeypatch: pytest.MonkeyPatch,
    table: Path,
    rows: int,
    *script: Callable[[Client], list[Record]],
    ids: Callable[[], dict[str, str]] = lambda: {"x": "1", "y": "2"},
) -> SourceReader:
    """Let a reader go through a script, until so many rows are written."""
    Client.script = iter(script)
    monkeypatch.setattr(_lane, "Consumer", Client)
    settings = ReaderSettings(group="g", kafka={"s": {}}, flush_s=0.05)
    parts = ReaderParts(writer=TableWriter(str(table), "g", "a"), ids=lambda _: ids, look_again=lambda: None)
    reader = SourceReader("s", settings, parts)
    reader.assign({LANE: frozenset({FleetTopic("c", "1", "x", "s"), FleetTopic("c", "2", "y", "s")})})
    deadline = time.monotonic() + 20
    while reader.rows_written < rows and time.monotonic() < deadline:
        time.sleep(0.01)
    reader.end()
    reader.join(10)
    return reader


def some(topic: str, begin: int, end: int) -> list[Record]:
    """Records of one topic."""
    return [Record(topic, offset) for offset in range(begin, end)]


def pause(_client: Client) -> list[Record]:
    """Nothing comes for longer than a flush's time."""
    time.sleep(0.1)
    return []


def until(fits: Callable[[], bool]) -> None:
    """Wait for what happens beside the reading."""
    deadline = time.monotonic() + 10
    while not fits() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_records_that_come_with_a_revocation_are_not_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was read is brought in while the poll runs; what the same poll returns belongs to the rows after that."""

    def join(client: Client) -> list[Record]:
        client.gain("x", "y")
        return [*some("x", 0, 5), *some("y", 0, 5)]

    def lose(client: Client) -> list[Record]:
        client.revoke("y")
        return some("x", 5, 9)

    def regain(client: Client) -> list[Record]:
        client.gain("y")
        assert client.held["y"] == 5, "reading goes on at the table's position"
        return [*some("y", 5, 7), *some("x", 9, 10)]

    read(monkeypatch, tmp_path / "t", 17, join, lose, regain)
    report = verify(str(tmp_path / "t"), "g")
    assert (report.rows, report.duplicates, report.missing) == (17, 0, 0)
    assert positions(str(tmp_path / "t"), "g") == {("x", 0): 10, ("y", 0): 7}


def test_reading_and_rebalances_go_on_while_records_are_brought_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Partitions stand still until a rebalance's callback has run, so the table is waited for elsewhere."""
    slow, gained = threading.Event(), threading.Event()
    commit = TableWriter.commit

    def late(writer: TableWriter, files: Sequence[DataFile], ranges: Sequence[Range]) -> dict[TopicPartition, int]:
        slow.set()
        assert gained.wait(10), "the rebalance waited for the table"
        return commit(writer, files, ranges)

    monkeypatch.setattr(TableWriter, "commit", late)

    def join(client: Client) -> list[Record]:
        client.gain("x")
        return some("x", 0, 5)

    def go_on(client: Client) -> list[Record]:
        assert slow.wait(10)
        client.gain("y")
        return [*some("x", 5, 7), *some("y", 0, 3)]

    def more(_client: Client) -> list[Record]:
        gained.set()
        return some("x", 7, 8)

    read(monkeypatch, tmp_path / "t", 11, join, pause, go_on, more)
    report = verify(str(tmp_path / "t"), "g")
    assert (report.rows, report.duplicates, report.missing) == (11, 0, 0)


def test_a_topic_that_leaves_and_comes_back_before_the_group_takes_it_leaves_no_hole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What came of it in between was left out: it is read again from where the table is."""
    x, y = FleetTopic("c", "1", "x", "s"), FleetTopic("c", "2", "y", "s")
    table = TableWriter(str(tmp_path / "t"), "g", "a")
    table.label([x, y])
    flushed: list[Range] = []
    rows = Rows()

    def flush() -> None:
        ranges, _ = lane.hand_over()
        flushed.extend(ranges)
        if ranges:
            table.commit(table.land(rows, {"x", "y"}), ranges)

    def join(client: Client) -> list[Record]:
        client.gain("x", "y")
        return some("x", 0, 5)

    def left(_client: Client) -> list[Record]:
        return some("x", 5, 9)

    def back(client: Client) -> list[Record]:
        assert client.held["x"] == 5
        return some("x", 5, 9)

    Client.script = iter([join, left, back])
    monkeypatch.setattr(_lane, "Consumer", Client)
    lane = LaneConsumer(LANE, {}, LaneParts(positions=table.positions, before_revoked=flush, look_again=lambda: None))
    for labels in ({x: "x", y: "y"}, {y: "y"}, {x: "x", y: "y"}):
        lane.subscribe(labels)
        lane.read(rows.add, 100, 0.0)
    assert flushed == [Range("x", 0, 0, 5)]
    assert lane.hand_over()[0] == [Range("x", 0, 5, 9)]


def test_a_broker_that_does_not_know_a_new_topic_yet_stops_nothing_for_good(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It tells the id of the topic before: what was read is left out once, and read again."""
    monkeypatch.setattr(_reader, "_PAUSE_S", 0.05)
    answers = [{"x": "0", "y": "2"}]

    def join(client: Client) -> list[Record]:
        client.gain("x", "y")
        client.held["x"] = 0
        return some("x", 0, 5)

    def again(client: Client) -> list[Record]:
        if client.held["x"] >= 0:
            time.sleep(0.01)
            return []
        client.held["x"] = 0
        return some("x", 0, 5)

    def ids() -> dict[str, str]:
        return answers.pop() if answers else {"x": "1", "y": "2"}

    read(monkeypatch, tmp_path / "t", 5, join, *[again] * 900, ids=ids)
    report = verify(str(tmp_path / "t"), "g")
    assert (report.rows, report.duplicates, report.missing) == (5, 0, 0)


class Trouble(Record):
    """What librdkafka says where it has stopped a partition: its offset is none of the log."""

    def error(self) -> KafkaError:  # type: ignore[override]  # that is the difference
        """Why."""
        return KafkaError(KafkaError._AUTO_OFFSET_RESET)


def test_a_partition_that_librdkafka_stopped_is_read_on_as_soon_as_its_offset_is_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker may not know a topic yet that was just made anew: neither a wrong answer nor none stops it for good."""
    answers: list[tuple[int, int] | None] = [None, (0, 2), (0, 40), (3, 40)]

    def marks(_client: Client, _partition: KafkaPartition, *, cached: bool = False, timeout: float = 0) -> Any:  # noqa: ANN401
        if cached:
            return -1001, -1001
        assert timeout < 5
        answer = answers.pop(0)
        if answer is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return answer

    monkeypatch.setattr(Client, "get_watermark_offsets", marks)
    monkeypatch.setattr(_lane, "Consumer", Client)
    monkeypatch.setattr(_lane, "_RESTART_S", 0.0)
    looks: list[int] = []

    def join(client: Client) -> list[Record]:
        client.gain("x", "y")
        return [Trouble("x", 10)]

    Client.script = iter([join, lambda _: [], lambda _: [], lambda _: [Trouble("y", 0)]])
    x, y = FleetTopic("c", "1", "x", "s"), FleetTopic("c", "2", "y", "s")
    parts = LaneParts(
        positions=lambda _: {TopicPartition("x", 0): 10},
        before_revoked=lambda: None,
        look_again=lambda: looks.append(0),
    )
    lane = LaneConsumer(LANE, {}, parts)
    lane.subscribe({x: "x", y: "y"})
    client = cast("Client", lane._consumer)
    said = []
    for _ in range(4):
        lane.read(lambda *_: None, 10, 0.0)
        said.append((dict(client.held), " ".join(lane.problems.values())))
    assert "cannot be asked" in said[0][1]
    assert "the log ends at 2, before 10" in said[1][1]
    assert said[2][0]["x"] == 10
    assert not said[2][1]
    assert said[3][0]["y"] == 3, "of a partition without a position the first record there is"
    assert looks


def test_names_of_topics_that_left_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane lives for months, topics may not."""
    Client.script = iter([])
    monkeypatch.setattr(_lane, "Consumer", Client)
    lane = LaneConsumer(
        LANE, {}, LaneParts(positions=lambda _: {}, before_revoked=lambda: None, look_again=lambda: None)
    )
    for number in range(5):
        lane.subscribe({FleetTopic("c", str(number), f"t{number}", "s"): f"t{number}"})
        cast("Client", lane._consumer).gain(f"t{number}")
    assert set(lane._ledger._topics) == {"t4"}
    assert set(lane._ledger._stands) == {TopicPartition("t4", 0)}


def test_records_that_another_agent_has_written_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two that both hold a partition write each record once, and the slower one goes on where the table is."""

    def join(client: Client) -> list[Record]:
        client.gain("x", "y")
        return some("x", 0, 6)

    read(monkeypatch, tmp_path / "t", 6, join)
    later: list[int] = []

    def stale(client: Client) -> list[Record]:
        client.gain("x")
        client.held["x"] = 0
        return some("x", 6, 8)

    def go_on(client: Client) -> list[Record]:
        later.append(client.held["x"])
        return some("x", 8, 9)

    read(monkeypatch, tmp_path / "t", 3, stale, go_on)
    assert later
    report = verify(str(tmp_path / "t"), "g")
    assert (report.rows, report.duplicates, report.missing) == (9, 0, 0)


def test_records_of_a_topic_that_was_made_anew_are_not_written_under_the_old_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A client that reads by name goes on in the new log without an error; the rows of other topics are written."""
    ids = {"x": "1", "y": "2"}

    def join(client: Client) -> list[Record]:
        client.gain("x", "y")
        return [*some("x", 0, 5), *some("y", 0, 5)]

    def anew(_client: Client) -> list[Record]:
        until(lambda: positions(str(tmp_path / "t"), "g").get(TopicPartition("x", 0)) == 5)
        ids["x"] = "3"
        return [*some("x", 5, 9), *some("y", 5, 7)]

    def more(_client: Client) -> list[Record]:
        return [*some("x", 9, 12), *some("y", 7, 8)]

    read(monkeypatch, tmp_path / "t", 13, join, pause, anew, pause, more, ids=lambda: ids)
    assert positions(str(tmp_path / "t"), "g") == {("x", 0): 5, ("y", 0): 8}
    assert verify(str(tmp_path / "t"), "g").rows == 13


def test_a_table_that_refuses_holds_up_no_topic_of_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where each topic has a table: the others are written meanwhile, and what was refused is read again."""
    broken = threading.Event()
    commit = TableWriter.commit

    def refuse(writer: TableWriter, files: Sequence[DataFile], ranges: Sequence[Range]) -> dict[TopicPartition, int]:
        if broken.is_set() and ranges[0].topic == "y":
            raise TableError("y is read-only")
        return commit(writer, files, ranges)

    monkeypatch.setattr(TableWriter, "commit", refuse)
    monkeypatch.setattr(_reader, "_PAUSE_S", 0.2)

    def join(client: Client) -> list[Record]:
        broken.set()
        client.gain("x", "y")
        return [*some("y", 0, 5), *some("x", 0, 5)]

    def go_on(client: Client) -> list[Record]:
        until(lambda: positions(str(tmp_path / "x"), "g") == {("x", 0): 5})
        assert positions(str(tmp_path / "x"), "g") == {("x", 0): 5}
        assert positions(str(tmp_path / "y"), "g") == {}
        broken.clear()
        client.held["y"] = 99
        return [*some("y", 5, 7), *some("x", 5, 9)]

    def again(client: Client) -> list[Record]:
        time.sleep(0.3)
        return some("y", 0, 7) if client.held["y"] < 0 else []

    read(monkeypatch, tmp_path / "{topic}", 16, join, pause, go_on, pause, *[again] * 9)
    for topic, count in (("x", 9), ("y", 7)):
        report = verify(str(tmp_path / topic), "g")
        assert (report.rows, report.duplicates, report.missing) == (count, 0, 0)


def test_a_table_that_cannot_be_made_holds_up_no_topic_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file lies in the way of one topic's table."""
    (tmp_path / "y").write_text("in the way")

    def join(client: Client) -> list[Record]:
        client.gain("x")
        return some("x", 0, 5)

    reader = read(monkeypatch, tmp_path / "{topic}", 5, join)
    assert verify(str(tmp_path / "x"), "g").rows == 5
    assert any(problem.startswith("s/y: ") for problem in reader.problems())


def test_a_table_that_refuses_is_logged_once_though_each_attempt_names_another_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And when it takes records again, none is missing."""
    commit = TableWriter.commit
    attempts: list[int] = []

    def refuse(writer: TableWriter, files: Sequence[DataFile], ranges: Sequence[Range]) -> dict[TopicPartition, int]:
        attempts.append(0)
        if len(attempts) <= 2:
            raise TableError(f"part-{len(attempts)}abc.parquet: the table's storage refused")
        return commit(writer, files, ranges)

    monkeypatch.setattr(TableWriter, "commit", refuse)
    monkeypatch.setattr(_reader, "_PAUSE_S", 0.05)

    def join(client: Client) -> list[Record]:
        client.gain("x", "y")
        client.held["x"] = 0
        return some("x", 0, 5)

    def again(client: Client) -> list[Record]:
        if "x" not in client.held or client.held["x"] >= 0:
            time.sleep(0.01)
            return []
        client.held["x"] = 0  # told to begin at the beginning: does so once
        return some("x", 0, 5)

    read(monkeypatch, tmp_path / "t", 5, join, pause, *[again] * 900)
    assert verify(str(tmp_path / "t"), "g").rows == 5
    assert caplog.text.count("storage refused") == 1
