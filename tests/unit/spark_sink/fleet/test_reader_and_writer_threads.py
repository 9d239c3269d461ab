"""Light ingestion against a client that behaves as brokers make it behave, into a real table."""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from assignors.fleet import FleetTopic, Lane
from assignors.scaling import PollSettings
from spark_sink import positions
from spark_sink.errors import TableError
from spark_sink.fleet import lane_consumer as lane_module
from spark_sink.fleet import reader_and_writer_threads
from spark_sink.fleet.decode_and_commit import Committed, LandedFiles
from spark_sink.fleet.reader_and_writer_threads import SourceReader
from spark_sink.fleet.reader_settings import ReaderParts, ReaderSettings
from spark_sink.fleet.table_writer import Landable, TableWriter
from spark_sink.fleet.unwritten_records import RecordBuffer
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.ranges.batch_offset import Range, TopicPartition
from tests.unit.spark_sink.fleet.scripted import LANE, Client, Record, gains, once_more, pause, read, some
from tests.waiting import wait_until


def test_records_that_come_with_a_revocation_are_not_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Records read so far are written during the poll; the records that this poll returns go to the next batch."""
    join = gains("x", "y", records=[*some("x", 0, 5), *some("y", 0, 5)])

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
    """Partitions pause until a rebalance's callback has returned, so the wait for the table is in another thread."""
    slow, gained = threading.Event(), threading.Event()
    commit = TableWriter.commit

    def late(writer: TableWriter, files: LandedFiles, ranges: Sequence[Range]) -> Committed:
        slow.set()
        assert gained.wait(10), "the rebalance waited for the table"
        return commit(writer, files, ranges)

    monkeypatch.setattr(TableWriter, "commit", late)

    join = gains("x", records=some("x", 0, 5))

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


def test_a_broker_that_does_not_know_a_new_topic_yet_stops_nothing_for_good(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It returns the id of the former topic: the records are left out once, and read again."""
    monkeypatch.setattr(reader_and_writer_threads, "_PAUSE_S", 0.05)
    answers = [{"x": "0", "y": "2"}]

    join = gains("x", "y", records=some("x", 0, 5), held={"x": 0})

    again = once_more(some("x", 0, 5))

    def ids() -> dict[str, str]:
        return answers.pop() if answers else {"x": "1", "y": "2"}

    read(monkeypatch, tmp_path / "t", 5, join, *[again] * 900, ids=ids)
    report = verify(str(tmp_path / "t"), "g")
    assert (report.rows, report.duplicates, report.missing) == (5, 0, 0)


def test_rebalances_are_counted_for_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A lane that is read no more takes none of them with it: Prometheus takes a smaller number for a restart."""
    join = gains("x", "y", records=some("x", 0, 5))

    def lose(client: Client) -> list[Record]:
        client.revoke("y")
        return some("x", 5, 9)

    reader = read(monkeypatch, tmp_path / "t", 9, join, lose)
    assert (reader.consumers, reader.rebalances) == (0, 2)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_reader_that_ended_by_a_defect_is_not_alive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A dead reader thread restarts only with the process, so the probe must report it."""

    def break_down(_client: Client) -> list[Record]:
        raise AssertionError("a defect")

    Client.script = iter([break_down])
    monkeypatch.setattr(lane_module, "Consumer", Client)
    parts = ReaderParts(writer=TableWriter(str(tmp_path / "t"), "g", "a"), ids=lambda _: dict, look_again=lambda: None)
    reader = SourceReader("s", ReaderSettings(group="g", kafka={"s": {}}), parts)
    assert reader.alive
    assert reader.works
    reader.assign({LANE: frozenset({FleetTopic("c", "1", "x", "s")})})
    wait_until(lambda: not reader.alive)
    assert not reader.works
    assert "restart" in " ".join(reader.problems())
    reader.end()


def test_a_reader_whose_table_refuses_does_not_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is alive, and works again as soon as the table takes something."""
    monkeypatch.setattr(reader_and_writer_threads, "_PAUSE_S", 0.01)
    commit = TableWriter.commit
    refused = threading.Event()

    def late(writer: TableWriter, files: LandedFiles, ranges: Sequence[Range]) -> Committed:
        if not refused.is_set():
            raise OSError("no space left")
        return commit(writer, files, ranges)

    monkeypatch.setattr(TableWriter, "commit", late)

    join = gains("x", records=some("x", 0, 5), held={"x": 0})

    again = once_more(some("x", 0, 5))

    Client.script = iter([join, *[again] * 2000])
    monkeypatch.setattr(lane_module, "Consumer", Client)
    parts = ReaderParts(
        writer=TableWriter(str(tmp_path / "t"), "g", "a"), ids=lambda _: lambda: {"x": "1"}, look_again=lambda: None
    )
    reader = SourceReader("s", ReaderSettings(group="g", kafka={"s": {}}, flush_s=0.05), parts)
    reader.assign({LANE: frozenset({FleetTopic("c", "1", "x", "s")})})
    wait_until(lambda: not reader.works)
    assert (reader.works, reader.alive) == (False, True)
    refused.set()
    wait_until(lambda: reader.works and reader.rows_written == 5)
    assert (reader.works, reader.rows_written) == (True, 5)
    reader.end()
    reader.join(10)


def test_a_refusal_that_differs_in_a_name_and_a_time_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """During an outage of an hour, each attempt would log a line."""
    monkeypatch.setattr(reader_and_writer_threads, "_PAUSE_S", 0.01)
    attempts = list[int]()

    def late(_writer: TableWriter, _files: LandedFiles, _ranges: Sequence[Range]) -> Committed:
        attempts.append(at := len(attempts))
        raise TableError(f"t: Error performing PUT http://s3/part-{at:x}.parquet in {at}.25{'m' * (at % 2)}s, after 10")

    monkeypatch.setattr(TableWriter, "commit", late)
    again = once_more(some("x", 0, 5))
    Client.script = iter([gains("x", records=some("x", 0, 5), held={"x": 0}), *[again] * 2000])
    monkeypatch.setattr(lane_module, "Consumer", Client)
    parts = ReaderParts(
        writer=TableWriter(str(tmp_path / "t"), "g", "a"), ids=lambda _: lambda: {"x": "1"}, look_again=lambda: None
    )
    reader = SourceReader("s", ReaderSettings(group="g", kafka={"s": {}}, flush_s=0.05), parts)
    reader.assign({LANE: frozenset({FleetTopic("c", "1", "x", "s")})})
    wait_until(lambda: len(attempts) > 5)
    reader.end()
    reader.join(10)
    said = [one.getMessage() for one in caplog.records if "Error performing" in one.getMessage()]
    assert said == ["fleet: s: t: Error performing PUT http://s3/part-*.parquet, after 10"]


def test_what_is_read_ahead_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """200,000 records of a megabyte were 200 GB: the bound counts bytes, and reading waits for the table."""

    class Large(Record):
        def value(self) -> bytes:
            return b"v" * 100_000

    landed: list[int] = []
    land = TableWriter.land

    def counted(writer: TableWriter, rows: Landable, labels: Collection[str]) -> LandedFiles:
        landed.append(cast("RecordBuffer", rows).size_bytes)
        time.sleep(0.05)  # slower than reading
        return land(writer, rows, labels)

    join = gains("x", "y", records=[])

    def ten(begin: int) -> Callable[[Client], list[Record]]:
        return lambda _: [Large("x", offset) for offset in range(begin, begin + 10)]

    monkeypatch.setattr(TableWriter, "land", counted)
    reader = read(monkeypatch, tmp_path / "t", 200, join, *(ten(n) for n in range(0, 200, 10)), buffer_bytes=3_000_000)
    assert reader.rows_written == 200
    assert max(landed) < 3_000_000 + 10 * 101_000
    assert len(landed) >= 6
    report = verify(str(tmp_path / "t"), "g")
    assert (report.rows, report.duplicates, report.missing) == (200, 0, 0)


def test_a_topic_that_changes_its_lane_is_handed_over_before_the_other_lane_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For a moment an agent has the topic in two consumers; by then the first one's records are in the table."""
    x, y = FleetTopic("c", "1", "x", "s"), FleetTopic("c", "2", "y", "s")
    other = Lane("s", 1)
    begun: list[int | None] = []

    class TwoLanes(Client):
        """Lane 0 reads x until the agent gives x to lane 1."""

        subscribed: tuple[str, ...] = ()
        script_of: tuple[str, ...] = ()

        def subscribe(self, _topics: list[str], **calls: Callable[..., None]) -> None:
            super().subscribe(_topics, **calls)
            new = [one for one in _topics if one not in self.held and one not in self.script_of]
            self.script_of = (*self.script_of, *new)

        def consume(self, _most: int, _wait_s: float) -> list[Record]:
            if not self.script_of:
                time.sleep(0.001)
                return []
            topic, *rest = self.script_of
            self.script_of = tuple(rest)
            self.gain(topic)
            begin = max(0, self.held[topic])
            if topic == "x":
                begun.append(begin)
            if topic == "x" and len(begun) == 1:
                reader.assign({LANE: frozenset({y}), other: frozenset({x})})
            return some(topic, begin, 9 if len(begun) > 1 else 5)

    monkeypatch.setattr(lane_module, "Consumer", TwoLanes)
    settings = ReaderSettings(group="g", kafka={"s": {}}, flush_s=3600.0)
    table = str(tmp_path / "t")
    parts = ReaderParts(
        writer=TableWriter(table, "g", "a"), ids=lambda _: lambda: {"x": "1", "y": "2"}, look_again=lambda: None
    )
    reader = SourceReader("s", settings, parts)
    reader.assign({LANE: frozenset({x, y})})
    wait_until(lambda: len(begun) == 2, 20)
    reader.end()
    reader.join(20)
    assert begun == [0, 5]
    assert positions(table, "g")[TopicPartition("x", 0)] == 9
    report = verify(table, "g")
    assert (report.duplicates, report.missing) == (0, 0)


def test_polls_follow_the_published_settings_while_it_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A change counts from the next poll on, and only that of a topic of the lane."""
    published: dict[str, PollSettings] = {"other": PollSettings(records=1)}
    asked: list[tuple[int, float]] = []

    def step(client: Client) -> list[Record]:
        asked.append(client.asked)
        if len(asked) == 1:
            client.gain("x")
        published["x"] = PollSettings(records=7, timeout_s=0.01)
        return some("x", len(asked) - 1, len(asked))

    read(monkeypatch, tmp_path / "t", 3, step, step, step, polls=lambda: published)
    assert asked[0] == (5000, 0.05)
    assert [most for most, _ in asked[1:]] == [7, 7]
    assert all(wait_s <= 0.01 for _, wait_s in asked[1:]), "shorter before the records are due to be written"


def test_the_first_records_after_a_quiet_time_are_written_at_once_and_later_ones_once_an_interval(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With an interval of an hour the first five do not wait for its end; the next three do, through many polls."""
    polls = 0

    def step(client: Client) -> list[Record]:
        nonlocal polls
        polls += 1
        if polls == 1:
            client.gain("x")
            return some("x", 0, 5)
        if reader.commits == 1 and not written:
            written.append(polls)
            return some("x", 5, 8)
        return []

    written: list[int] = []
    monkeypatch.setattr(Client, "consume", lambda client, *_: step(client))
    monkeypatch.setattr(lane_module, "Consumer", Client)
    parts = ReaderParts(
        writer=TableWriter(str(tmp_path / "t"), "g", "a"), ids=lambda _: lambda: {"x": "1"}, look_again=lambda: None
    )
    reader = SourceReader("s", ReaderSettings(group="g", kafka={"s": {}}, flush_s=3600.0), parts)
    reader.assign({LANE: frozenset({FleetTopic("c", "1", "x", "s")})})
    wait_until(lambda: written and polls > written[0] + 1_000, 20)
    assert (reader.rows_written, reader.commits) == (5, 1)
    reader.end()
    reader.join(20)
    assert (reader.rows_written, reader.commits) == (8, 2)


@pytest.mark.parametrize("count", [1, 4])
def test_the_waits_of_all_lanes_end_before_the_first_records_are_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: int
) -> None:
    """A lane's poll waits for its time although it has some records: four lanes would wait for 0.2 s."""
    waits: list[tuple[int, float]] = []

    class Waiting(Client):
        """Lane 0 has five records."""

        def consume(self, _most: int, wait_s: float) -> list[Record]:
            number = int(self.config["group.id"][-1])
            waits.append((number, wait_s))
            if number or self.held:
                return []
            self.gain("x")
            return some("x", 0, 5)

    monkeypatch.setattr(lane_module, "Consumer", Waiting)
    parts = ReaderParts(
        writer=TableWriter(str(tmp_path / "t"), "g", "a"), ids=lambda _: lambda: {"x": "1"}, look_again=lambda: None
    )
    reader = SourceReader("s", ReaderSettings(group="g", kafka={"s": {}}, flush_s=3600.0), parts)
    lanes = [Lane("s", number) for number in range(count)]
    reader.assign({lane: frozenset({FleetTopic("c", str(n), "xyzw"[n], "s")}) for n, lane in enumerate(lanes)})
    wait_until(lambda: reader.commits == 1, 20)
    reader.end()
    reader.join(20)
    assert waits[0] == (0, 0.05)
    rounds = waits[1 : 1 + count - 1]
    assert all(wait_s <= 0.1 / count for _, wait_s in rounds), "while records wait to be written"


def test_the_clients_of_the_expected_lanes_connect_before_there_are_topics(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Connecting takes as long as joining the fleet, which happens meanwhile; lanes that get no topics are closed."""
    made: list[str] = []
    closed: list[str] = []

    class Counted(Client):
        """Its creation and its end are seen."""

        def __init__(self, config: dict[str, Any]) -> None:
            super().__init__(config)
            made.append(config["group.id"])

        def close(self) -> None:
            closed.append(self.config["group.id"])

    Client.script = iter([])
    monkeypatch.setattr(lane_module, "Consumer", Counted)
    parts = ReaderParts(
        writer=TableWriter(str(tmp_path / "t"), "g", "a"),
        ids=lambda _: lambda: {"x": "1"},
        look_again=lambda: None,
        lanes=[Lane("s", 0), Lane("s", 1)],
    )
    reader = SourceReader("s", ReaderSettings(group="g", kafka={"s": {}}, flush_s=0.05), parts)
    wait_until(lambda: len(made) == 2, 20)
    assert not closed
    reader.assign({LANE: frozenset({FleetTopic("c", "1", "x", "s")})})
    wait_until(lambda: closed, 20)
    reader.end()
    reader.join(20)
    assert (made, closed) == (["g.lane-0", "g.lane-1"], ["g.lane-1", "g.lane-0"])
