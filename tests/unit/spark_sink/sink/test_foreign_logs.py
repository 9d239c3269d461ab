"""A log that other writers, a crash or a copy left behind: each way into the table refuses it, or is right about it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from spark_sink.errors import TableError
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.double_row_removal import repair
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.sink.quarantine.quarantine_replay import replay, waiting
from spark_sink.sink.rewind.delta_rewind import rewind
from tests.unit.spark_sink.sink.foreign_logs import FOREIGN, append, commit, commits, log_folder, protocol

pytestmark = pytest.mark.long

COMMITS = 6


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of six batches and its quarantine."""
    folder = tmp_path_factory.mktemp("whole")
    for number in range(COMMITS):
        commit(folder / "table", number * 10)
    return folder


def _applications(*names: str) -> Callable[[Path], None]:
    return append(FOREIGN, *({"txn": {"appId": name, "version": 3, "lastUpdated": 1}} for name in names))


def _half_entry(table: Path) -> None:
    newest = commits(table)[-1]
    newest.write_bytes(newest.read_bytes()[:-40])


def _binary_entry(table: Path) -> None:
    append()(table)
    commits(table)[-1].write_bytes(b"\xff\xfe\x00")


def _checkpoint(table: Path, *, clean: bool = False) -> Path:
    DeltaTable(str(table)).create_checkpoint()
    [found] = log_folder(table).glob("*.checkpoint.parquet")
    if clean:
        for file in commits(table):
            file.unlink()
    return found


def _half_checkpoint(table: Path, *, clean: bool = False) -> None:
    file = _checkpoint(table, clean=clean)
    file.write_bytes(file.read_bytes()[:200])


def _checkpoint_without_transactions(table: Path, *, clean: bool = False) -> None:
    file = _checkpoint(table, clean=clean)
    pq.write_table(pq.read_table(file).drop_columns(["txn"]), file)


def _checkpoint_in_parts(table: Path, *, missing: bool, clean: bool) -> None:
    file = _checkpoint(table, clean=clean)
    rows, name = pq.read_table(file), file.name[:20]
    file.unlink()
    half = rows.num_rows // 2
    pq.write_table(rows.slice(0, half), log_folder(table) / f"{name}.checkpoint.{1:010}.{2:010}.parquet")
    if not missing:
        pq.write_table(rows.slice(half), log_folder(table) / f"{name}.checkpoint.{2:010}.{2:010}.parquet")
    last = {"version": int(name), "size": rows.num_rows, "parts": 2}
    (log_folder(table) / "_last_checkpoint").write_text(json.dumps(last))


def _clocks_that_go_back(table: Path) -> None:
    for number, file in enumerate(commits(table)):
        actions: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
        for one in actions:
            if "commitInfo" in one:
                one["commitInfo"]["timestamp"] = 10**13 - number * 10**6
        file.write_text("\n".join(json.dumps(one) for one in actions) + "\n")


def _uuid_checkpoint(table: Path) -> None:
    file = _checkpoint(table, clean=True)
    file.rename(file.with_name(f"{file.name[:20]}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"))


def _joined_entries(table: Path) -> None:
    text = "".join(file.read_text() for file in commits(table)[1:4])
    (log_folder(table) / f"{1:020}.{3:020}.compacted.json").write_text(text)


def _newest_gone(table: Path) -> None:
    for file in commits(table)[-2:]:
        file.unlink()


RIGHT: dict[str, Callable[[Path], object]] = {
    "an application of Spark": _applications("7a1c-7a1c"),
    "applications named almost like ours": _applications("g/t/x", "g/t", "g", "g/t/0/more", "g//0", "o/0", "/0"),
    "CONVERT": append({"commitInfo": {"timestamp": 1, "operation": "CONVERT", "operationParameters": {}}}),
    "no operation": append({"commitInfo": {}}),
    "a note in our name": append({"commitInfo": {"operation": "WRITE", "kafka-azimuth": "x"}}),
    "an action of a later protocol": append(FOREIGN, {"more": {"x": 1}}),
    "an empty entry": append(),
    "a checkpoint in parts": lambda table: _checkpoint_in_parts(table, missing=False, clean=False),
    "clocks that go back": _clocks_that_go_back,
    "entries that are also in a compacted file": _joined_entries,
    "a folder of staged commits": lambda table: (log_folder(table) / "_staged_commits").mkdir(),
}

REFUSED: dict[str, Callable[[Path], object]] = {
    "an application without a version": append(FOREIGN, {"txn": {"appId": "q"}}),
    "an application of nothing": append(FOREIGN, {"txn": None}),
    "an entry that is a list": append(FOREIGN, [{"txn": 1}]),
    "half an entry": _half_entry,
    "an entry of other bytes": _binary_entry,
    "a later reader's version": protocol(99, 99),
    "a later writer's version": protocol(1, 99),
    "a feature of writers": protocol(1, 7, writerFeatures=["appendOnly", "invariants", "more"]),
    "a feature of readers": protocol(3, 7, readerFeatures=["more"], writerFeatures=["more"]),
    "a pointer to no checkpoint": lambda table: (log_folder(table) / "_last_checkpoint").write_text(
        '{"version":3,"size":9}'
    ),
    "half a checkpoint": _half_checkpoint,
    "a checkpoint without transactions": _checkpoint_without_transactions,
    "a checkpoint without transactions and nothing else": lambda table: _checkpoint_without_transactions(
        table, clean=True
    ),
    "half a checkpoint and nothing else": lambda table: _half_checkpoint(table, clean=True),
    "a part of a checkpoint and nothing else": lambda table: _checkpoint_in_parts(table, missing=True, clean=True),
    "a V2 checkpoint and nothing else": _uuid_checkpoint,
    "an entry is gone": lambda table: commits(table)[3].unlink(),
    "the newest entries are gone": _newest_gone,
}


def _compact(path: str) -> None:
    table = DeltaLakeTable(path, "g")
    table.refresh()
    table._compaction._compacted = 0
    table.compact(1)


PATHS: dict[str, Callable[[str], object]] = {
    "verify": verify,
    "quarantine": lambda path: list(waiting(path, "g")),
    "repair": repair,
    "rewind": lambda path: rewind(path, apply=True),
    "replay": lambda path: replay(path, "g"),
    "compaction": _compact,
}


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A copy of the table, to be changed."""
    return Path(shutil.copytree(whole, tmp_path / "lake")) / "table"


@pytest.mark.parametrize("case", RIGHT)
def test_what_others_may_write_disturbs_nothing(copy: Path, case: str) -> None:
    """Each way into the table in turn, then a batch, and each offset is there once."""
    RIGHT[case](copy)
    for run in PATHS.values():
        run(str(copy))
    commit(copy, COMMITS * 10)
    report = verify(str(copy))
    assert (report.ok, report.missing) == (True, 0)
    assert report.rows == COMMITS * 10 + 9  # the replay brought six back


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_or_written_is_refused_with_a_sentence(copy: Path, case: str) -> None:
    """Paths that do not need the broken part may work; none of them writes into the log."""
    REFUSED[case](copy)
    before = {file: file.read_bytes() for file in copy.parent.rglob("_delta_log/*")}
    with pytest.raises(TableError) as refused:
        commit(copy, COMMITS * 10)
    sentences = [str(refused.value)]
    for name, run in PATHS.items():
        if (case, name) in WRITES:
            continue
        try:
            run(str(copy))
        except TableError as error:
            sentences.append(str(error))
    assert {file: file.read_bytes() for file in copy.parent.rglob("_delta_log/*")} == before
    for one in sentences:
        assert str(copy) in one
        assert "\n" not in one
        assert "pthread" not in one
        assert "lost against other writers" not in one


def test_a_checkpoint_without_transactions_is_named_and_the_table_continues_without_it(copy: Path) -> None:
    """To read it as one without positions would begin at the first record again, and double all of them."""
    _checkpoint_without_transactions(copy)
    [file] = log_folder(copy).glob("*.checkpoint.parquet")
    with pytest.raises(
        TableError, match=f"{file.name} has no application transactions .*delete this file and _last_checkpoint"
    ):
        commit(copy, COMMITS * 10)
    file.unlink()
    (log_folder(copy) / "_last_checkpoint").unlink()
    commit(copy, COMMITS * 10)
    report = verify(str(copy))
    assert (report.ok, report.missing, report.duplicates) == (True, 0, 0)


OTHER_FORMS: list[object] = [
    "x",
    1,
    [],
    {},
    {"group": "g"},
    {"group": "g", "files": {}, "ends": [["t", 0, 60]], "before": []},
]
OTHER_FILES: list[object] = [[1], [{}], ["x"]]
OTHER_ENDS: list[object] = [1, [1], [["t"]], {"t": 1}]
OTHER_FORMS += [{"group": "g", "files": files, "ends": [["t", 0, 60]], "before": []} for files in OTHER_FILES]
OTHER_FORMS += [{"group": "g", "files": [], "ends": ends, "before": []} for ends in OTHER_ENDS]


@pytest.mark.parametrize("form", OTHER_FORMS, ids=json.dumps)
def test_bad_rows_that_a_commit_names_in_another_form_are_refused(copy: Path, form: object) -> None:
    """Such a note is read only while the quarantine is behind; the sentence names the commit."""
    shutil.rmtree(copy.with_name("table_quarantine"))
    append({"commitInfo": {"operation": "WRITE", "kafka-azimuth": {"quarantined": form}}})(copy)
    ways: dict[str, Callable[[str], object]] = {**PATHS, "commit": lambda path: commit(Path(path), COMMITS * 10)}
    for name in ("commit", "verify", "quarantine", "replay", "rewind"):
        with pytest.raises(TableError, match=r"commit \d+ names bad records in an unknown form"):
            ways[name](str(copy))


# A log without its newest entries is a whole table of an earlier day; only its quarantine shows that it went back, and
# the rewind is what takes that back as well.
WRITES = {("the newest entries are gone", name) for name in ("rewind", "replay", "compaction")}
