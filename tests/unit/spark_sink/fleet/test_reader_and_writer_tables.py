"""Light ingestion into a real table that is another's, too, or refuses."""

import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable

from spark_sink import positions
from spark_sink.errors import TableError
from spark_sink.fleet import reader_and_writer_threads
from spark_sink.fleet.decode_and_commit import Committed, LandedFiles
from spark_sink.fleet.reader_and_writer_threads import SourceReader
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.sink.rewind.delta_rewind import rewind
from spark_sink.sink.row_options import RowOptions
from tests.unit.spark_sink.fleet.scripted import Client, Record, gains, once_more, pause, read, returns, some
from tests.waiting import wait_until


def test_records_that_another_agent_has_written_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two agents with the same partition write each record once; the slower continues at the table's position."""
    join = gains("x", "y", records=some("x", 0, 6))

    read(monkeypatch, tmp_path / "t", 6, join)
    later: list[int] = []

    stale = gains("x", records=some("x", 6, 8), held={"x": 0})

    def go_on(client: Client) -> list[Record]:
        later.append(client.held["x"])
        return some("x", 8, 9)

    read(monkeypatch, tmp_path / "t", 3, stale, go_on)
    assert later
    report = verify(str(tmp_path / "t"), "g")
    assert (report.rows, report.duplicates, report.missing) == (9, 0, 0)


def test_bad_records_are_counted_for_the_agent_that_wrote_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An alert on this number must not fire again when another agent takes over the topic."""
    join = gains("x", "y", records=some("x", 0, 6))

    decoded = RowOptions.parse(
        {"valueFormat": "json", "valueSchema": '{"id": "bigint"}'}, {}, table=str(tmp_path / "t")
    )
    assert read(monkeypatch, tmp_path / "t", 6, join, decoded=decoded).bad_records == 6

    go_on = gains("x", records=some("x", 6, 7))

    assert read(monkeypatch, tmp_path / "t", 1, go_on, decoded=decoded).bad_records == 1


def test_records_of_a_topic_that_was_made_anew_are_not_written_under_the_old_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A client that reads by name continues in the new log without an error; other topics' rows are written."""
    ids = {"x": "1", "y": "2"}

    join = gains("x", "y", records=[*some("x", 0, 5), *some("y", 0, 5)])

    def anew(_client: Client) -> list[Record]:
        wait_until(lambda: positions(str(tmp_path / "t"), "g").get(TopicPartition("x", 0)) == 5)
        ids["x"] = "3"
        return [*some("x", 5, 9), *some("y", 5, 7)]

    more = returns(*some("x", 9, 12), *some("y", 7, 8))

    read(monkeypatch, tmp_path / "t", 13, join, pause, anew, pause, more, ids=lambda: ids)
    assert positions(str(tmp_path / "t"), "g") == {("x", 0): 5, ("y", 0): 8}
    assert verify(str(tmp_path / "t"), "g").rows == 13


def test_a_table_that_refuses_holds_up_no_topic_of_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a table for each topic, the others are written meanwhile, and refused records are read again."""
    broken = threading.Event()
    commit = TableWriter.commit

    def refuse(writer: TableWriter, files: LandedFiles, ranges: Sequence[Range]) -> Committed:
        if broken.is_set() and ranges[0].topic == "y":
            raise TableError("y is read-only")
        return commit(writer, files, ranges)

    monkeypatch.setattr(TableWriter, "commit", refuse)
    monkeypatch.setattr(reader_and_writer_threads, "_PAUSE_S", 0.2)

    def join(client: Client) -> list[Record]:
        broken.set()
        client.gain("x", "y")
        return [*some("y", 0, 5), *some("x", 0, 5)]

    def go_on(client: Client) -> list[Record]:
        wait_until(lambda: positions(str(tmp_path / "x"), "g") == {("x", 0): 5})
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


def test_agents_of_a_fleet_go_on_after_a_rewind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One refusal, and the same process reads again from the new positions; the message says so."""
    table = str(tmp_path / "x")
    monkeypatch.setattr(reader_and_writer_threads, "_PAUSE_S", 0.2)
    said: list[str] = []
    refuse = SourceReader._refuse

    def note(reader: SourceReader, labels: Collection[str], error: Exception) -> None:
        said.append(str(error))
        refuse(reader, labels, error)

    monkeypatch.setattr(SourceReader, "_refuse", note)

    join = gains("x", records=some("x", 0, 5))

    def set_back(client: Client) -> list[Record]:
        wait_until(lambda: positions(table, "g") == {("x", 0): 5})
        DeltaTable(table).restore(0)
        rewind(table, "g", apply=True)
        assert positions(table, "g") == {("x", 0): 0}
        client.held["x"] = 99
        return some("x", 5, 7)

    def again(client: Client) -> list[Record]:
        time.sleep(0.3)
        return some("x", 0, 7) if client.held["x"] == 0 else []

    read(monkeypatch, tmp_path / "{topic}", 12, join, pause, set_back, pause, *[again] * 9)
    report = verify(table, "g")
    assert (report.rows, report.duplicates, report.missing) == (7, 0, 0)
    assert len(said) == 1
    assert "Agents of a fleet continue from the new positions by themselves" in said[0]


def test_a_table_that_cannot_be_made_holds_up_no_topic_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file lies in the way of one topic's table."""
    (tmp_path / "y").write_text("in the way")

    join = gains("x", records=some("x", 0, 5))

    reader = read(monkeypatch, tmp_path / "{topic}", 5, join)
    assert verify(str(tmp_path / "x"), "g").rows == 5
    assert any(problem.startswith("s/y: ") for problem in reader.problems())
    assert reader.lag_s()["y"] > 0, "alerts on lag must see it"


def test_a_table_that_refuses_is_logged_once_though_each_attempt_names_another_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And when it takes records again, none is missing."""
    commit = TableWriter.commit
    attempts: list[int] = []

    def refuse(writer: TableWriter, files: LandedFiles, ranges: Sequence[Range]) -> Committed:
        attempts.append(0)
        if len(attempts) <= 2:
            raise TableError(f"part-{len(attempts)}abc.parquet: the table's storage refused")
        return commit(writer, files, ranges)

    monkeypatch.setattr(TableWriter, "commit", refuse)
    monkeypatch.setattr(reader_and_writer_threads, "_PAUSE_S", 0.05)

    join = gains("x", "y", records=some("x", 0, 5), held={"x": 0})

    again = once_more(some("x", 0, 5))

    read(monkeypatch, tmp_path / "t", 5, join, pause, *[again] * 900)
    assert verify(str(tmp_path / "t"), "g").rows == 5
    assert caplog.text.count("storage refused") == 1


def test_reading_goes_on_after_an_outage_in_which_the_positions_cannot_be_read_either(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every record was dropped for ever after such an outage, and the status showed no problem."""
    monkeypatch.setattr(reader_and_writer_threads, "_PAUSE_S", 0.02)
    commit, positions_of, fail = TableWriter.commit, TableWriter.positions, SourceReader._fail
    refusals = ["commit"]
    problems: list[str] = []

    def no_commit(writer: TableWriter, files: LandedFiles, ranges: Sequence[Range]) -> Committed:
        if "commit" in refusals:
            refusals[:] = ["positions"] * 4
            raise TableError("the storage takes no commit")
        return commit(writer, files, ranges)

    def no_positions(writer: TableWriter, labels: Collection[str]) -> dict[TopicPartition, int]:
        if "positions" in refusals:
            refusals.pop()
            raise TableError("the storage returns no positions")
        return positions_of(writer, labels)

    def noted(reader: SourceReader, error: Exception) -> None:
        fail(reader, error)
        problems.extend(reader.problems())

    join = gains("x", records=some("x", 0, 5), held={"x": 0})

    again = once_more(some("x", 0, 5))

    monkeypatch.setattr(TableWriter, "commit", no_commit)
    monkeypatch.setattr(TableWriter, "positions", no_positions)
    monkeypatch.setattr(SourceReader, "_fail", noted)
    reader = read(monkeypatch, tmp_path / "t", 5, join, *[again] * 900)
    assert verify(str(tmp_path / "t"), "g").rows == 5
    assert problems == ["s: the storage takes no commit", *["s: the storage returns no positions"] * 4]
    assert not reader.problems()
    assert caplog.text.count("returns no positions") == 1, "logged once"
