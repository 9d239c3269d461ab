"""The table of an ops log takes each write once, and nothing of another table is touched."""

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from spark_sink.errors import SparkSinkError, TableError
from spark_sink.lake.ops_log import ops_table
from spark_sink.lake.ops_log.ops_table import SCHEMA, OpsTable, OpsWrite

DAY = date(2024, 3, 1)


def write(topic: str = "x", day: date = DAY) -> OpsWrite:
    """One row."""
    at = datetime(day.year, day.month, day.day, tzinfo=UTC)
    row = {"began_at": at, "ended_at": at, "date": day, "topic": topic, "batches": 1, "rows": 7}
    return OpsWrite(rows=pa.Table.from_pylist([row], schema=SCHEMA), day=day)


def topics(table: Path) -> list[str]:
    """The topics of the rows."""
    return sorted(DeltaTable(str(table)).to_pyarrow_table(columns=["topic"])["topic"].to_pylist())


def content(folder: Path) -> dict[str, bytes]:
    """Each file."""
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def test_rows_can_be_queried_as_those_of_any_delta_table(tmp_path: Path) -> None:
    """By columns of the documented names and types; the day is a partition."""
    table = tmp_path / "ops"
    OpsTable(str(table)).append(write())
    found = DeltaTable(str(table))
    assert found.metadata().partition_columns == ["date"]
    (row,) = found.to_pyarrow_table(filters=[("date", "=", DAY)]).to_pylist()
    assert (row["topic"], row["rows"], row["date"]) == ("x", 7, DAY)
    assert set(row) == set(SCHEMA.names)


def _lose_answers(monkeypatch: pytest.MonkeyPatch, *, committed: bool) -> None:
    commit = DeltaTable.create_write_transaction

    def lost(table: DeltaTable, *args: Any, **more: Any) -> None:
        if committed:
            commit(table, *args, **more)
        raise CommitFailedError("no answer")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lost)


@pytest.mark.parametrize("committed", [True, False])
def test_a_lost_answer_neither_doubles_nor_loses_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, committed: bool
) -> None:
    """An object store may commit and time out; and a failed attempt leaves no file."""
    table, mine = OpsTable(str(tmp_path / "ops")), write("mine")
    table.append(write("first"))
    with monkeypatch.context() as patch:
        _lose_answers(patch, committed=committed)
        if committed:
            table.append(mine)
        else:
            with pytest.raises(TableError, match="no answer"):
                table.append(mine)
    OpsTable(str(tmp_path / "ops")).append(write("other"))
    table.append(mine)
    assert topics(tmp_path / "ops") == ["first", "mine", "other"]
    assert len(list((tmp_path / "ops").rglob("part-*.parquet"))) == 3


def test_a_write_whose_answer_stays_unknown_is_not_doubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is away right after the commit, so nothing can be asked until the next attempt."""
    table, mine = OpsTable(str(tmp_path / "ops")), write("mine")
    table.append(write("first"))
    with monkeypatch.context() as patch:
        _lose_answers(patch, committed=True)
        patch.setattr(ops_table, "read_commit", _away)
        with pytest.raises(TableError, match="away"):
            table.append(mine)
    table.append(mine)
    assert topics(tmp_path / "ops") == ["first", "mine"]


def _away(*_: object) -> str:
    raise OSError("away")


def _other_columns(folder: Path) -> None:
    write_deltalake(str(folder), pa.table({"topic": ["a"], "partition": [0], "offset": [1]}))


def _other_type(folder: Path) -> None:
    fields = [one if one.name != "rows" else pa.field("rows", pa.string()) for one in SCHEMA]
    write_deltalake(str(folder), pa.schema(fields).empty_table(), partition_by=["date"])


def _other_partitions(folder: Path) -> None:
    write_deltalake(str(folder), SCHEMA.empty_table())


def _rule(folder: Path) -> None:
    write_deltalake(str(folder), SCHEMA.empty_table(), partition_by=["date"])
    DeltaTable(str(folder)).alter.add_constraint({"positive": "rows > 0"})


def _files(folder: Path) -> None:
    folder.mkdir()
    (folder / "report.csv").write_text("a,b")


def _broken(folder: Path) -> None:
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_delta_log" / f"{0:020}.json").write_text("{")


@pytest.mark.parametrize("make", [_other_columns, _other_type, _other_partitions, _rule, _files, _broken])
def test_what_is_at_its_address_stays_as_it_is(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Someone else's table, or folder of files: refused, also by the check, and no byte of it changes."""
    folder = tmp_path / "ops"
    make(folder)
    before = content(folder)
    with pytest.raises(SparkSinkError):
        OpsTable(str(folder)).append(write())
    with pytest.raises(SparkSinkError):
        OpsTable(str(folder)).check()
    assert content(folder) == before


def test_a_table_with_further_columns_is_taken(tmp_path: Path) -> None:
    """Of a later version, or of a user."""
    more = SCHEMA.append(pa.field("note", pa.string()))
    write_deltalake(str(tmp_path / "ops"), more.empty_table(), partition_by=["date"])
    OpsTable(str(tmp_path / "ops")).append(write())
    assert topics(tmp_path / "ops") == ["x"]


def test_a_deleted_table_is_created_again(tmp_path: Path) -> None:
    """A handle of the deleted one would leave a log that no reader can open."""
    table, folder = OpsTable(str(tmp_path / "ops")), tmp_path / "ops"
    for _ in range(3):
        table.append(write("before"))
    folder.rename(tmp_path / "away")
    table.append(write("after"))
    assert topics(folder) == ["after"]


def test_the_files_of_a_day_are_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each minute of each agent would be a file; also if each process writes only once."""
    monkeypatch.setattr(ops_table, "_MAINTAIN_EVERY", 10)
    for number in range(40):
        OpsTable(str(tmp_path / "ops")).append(write(str(number)))
    assert topics(tmp_path / "ops") == sorted(map(str, range(40)))
    assert len(DeltaTable(str(tmp_path / "ops")).file_uris()) <= 10


def test_old_days_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others stay, with all their rows."""
    monkeypatch.setattr(ops_table, "_MAINTAIN_EVERY", 10)
    table = OpsTable(str(tmp_path / "ops"), keep_days=3)
    days = [DAY + timedelta(days=n // 4) for n in range(40)]
    for day in days:
        table.append(write(day.isoformat(), day))
    kept = [one for one in topics(tmp_path / "ops") if one >= (days[-1] - timedelta(days=3)).isoformat()]
    assert kept == [day.isoformat() for day in days if day >= days[-1] - timedelta(days=3)]
    assert len(topics(tmp_path / "ops")) <= len(kept) + 10


def test_a_clock_that_is_years_ahead_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process with such a clock would empty the ops log of all others; the storage's clock bounds the day."""
    monkeypatch.setattr(ops_table, "_MAINTAIN_EVERY", 1)
    table = OpsTable(str(tmp_path / "ops"), keep_days=3)
    today = datetime.now(UTC).date()
    table.append(write("others", today - timedelta(days=1)))
    table.append(write("ahead", today + timedelta(days=3650)))
    assert topics(tmp_path / "ops") == ["ahead", "others"]


def test_writers_at_the_same_time_lose_and_double_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They create the table, append and compact it at the same time, each in a thread with its own handle."""
    monkeypatch.setattr(ops_table, "_MAINTAIN_EVERY", 5)
    failed: list[SparkSinkError] = []

    def run(number: int) -> None:
        table = OpsTable(str(tmp_path / "ops"))
        for n in range(8):
            one = write(f"{number}-{n}")
            for _ in range(20):
                try:
                    table.append(one)
                    break
                except SparkSinkError as error:
                    failed.append(error)
            else:
                pytest.fail(f"{one} was never written: {failed[-1]}")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert topics(tmp_path / "ops") == sorted(f"{number}-{n}" for number in range(4) for n in range(8)), failed


def test_the_check_says_whether_it_exists_and_makes_nothing(tmp_path: Path) -> None:
    """`--check` of an agent or a job."""
    table = OpsTable(str(tmp_path / "ops"))
    assert not table.check()
    assert not (tmp_path / "ops").exists()
    table.append(write())
    assert table.check()
