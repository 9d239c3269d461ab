"""A log that other writers, a crash or a copy left behind: each way into the table refuses it, or is right about it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from spark_sink.errors import TableError
from spark_sink.formats.quarantined_rows import COLUMN, REASON
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.lake.table_repair import repair
from spark_sink.lake.verification import verify
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.position_rewind import rewind
from spark_sink.sink.quarantine_replay import quarantined, replay
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions

KEYS = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())]
SCHEMA = pa.schema([*KEYS, (COLUMN, REASON)])
COMMITS = 6
FOREIGN = {"commitInfo": {"timestamp": 1, "operation": "STREAMING UPDATE", "engineInfo": "Apache-Spark/4.0"}}


def _commit(path: Path, begin: int) -> None:
    """Ten offsets, of which the sixth is bad."""
    options = SinkOptions.parse(
        {"path": str(path), "kafka.group.id": "g", "checkpointLocation": "c", "compactEvery": "0"}
    )
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    bad = {COLUMN: {"error_class": "Bad", "error_text": "x", "value": b"v"}}
    rows = [
        {"topic": "t", "partition": 0, "offset": one, "value": b"v"} | (bad if one % 10 == 5 else {})
        for one in range(begin, begin + 10)
    ]
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    offset = Offset.of([Range("t", 0, begin, begin + 10)])
    Tables(options).commit(offset, sorting.close(), normal_schema(SCHEMA), 0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of six batches and its quarantine."""
    folder = tmp_path_factory.mktemp("whole")
    for number in range(COMMITS):
        _commit(folder / "table", number * 10)
    return folder


def _log(table: Path) -> Path:
    return table / "_delta_log"


def _commits(table: Path) -> list[Path]:
    return sorted(file for file in _log(table).glob("*.json") if file.stem.isdigit())


def _append(*actions: object) -> Callable[[Path], None]:
    def run(table: Path) -> None:
        entry = _log(table) / f"{int(_commits(table)[-1].stem) + 1:020}.json"
        entry.write_text("\n".join(json.dumps(one) for one in actions) + "\n")

    return run


def _protocol(reader: int, writer: int, **features: list[str]) -> Callable[[Path], None]:
    return _append(FOREIGN, {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}})


def _applications(*names: str) -> Callable[[Path], None]:
    return _append(FOREIGN, *({"txn": {"appId": name, "version": 3, "lastUpdated": 1}} for name in names))


def _half_entry(table: Path) -> None:
    newest = _commits(table)[-1]
    newest.write_bytes(newest.read_bytes()[:-40])


def _binary_entry(table: Path) -> None:
    _append()(table)
    _commits(table)[-1].write_bytes(b"\xff\xfe\x00")


def _checkpoint(table: Path, *, clean: bool = False) -> Path:
    DeltaTable(str(table)).create_checkpoint()
    [found] = _log(table).glob("*.checkpoint.parquet")
    if clean:
        for file in _commits(table):
            file.unlink()
    return found


def _half_checkpoint(table: Path, *, clean: bool = False) -> None:
    file = _checkpoint(table, clean=clean)
    file.write_bytes(file.read_bytes()[:200])


def _checkpoint_in_parts(table: Path, *, missing: bool, clean: bool) -> None:
    file = _checkpoint(table, clean=clean)
    rows, name = pq.read_table(file), file.name[:20]
    file.unlink()
    half = rows.num_rows // 2
    pq.write_table(rows.slice(0, half), _log(table) / f"{name}.checkpoint.{1:010}.{2:010}.parquet")
    if not missing:
        pq.write_table(rows.slice(half), _log(table) / f"{name}.checkpoint.{2:010}.{2:010}.parquet")
    last = {"version": int(name), "size": rows.num_rows, "parts": 2}
    (_log(table) / "_last_checkpoint").write_text(json.dumps(last))


def _clocks_that_go_back(table: Path) -> None:
    for number, file in enumerate(_commits(table)):
        actions: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
        for one in actions:
            if "commitInfo" in one:
                one["commitInfo"]["timestamp"] = 10**13 - number * 10**6
        file.write_text("\n".join(json.dumps(one) for one in actions) + "\n")


def _newest_gone(table: Path) -> None:
    for file in _commits(table)[-2:]:
        file.unlink()


RIGHT: dict[str, Callable[[Path], object]] = {
    "an application of Spark": _applications("7a1c-7a1c"),
    "applications named almost like ours": _applications("g/t/x", "g/t", "g", "g/t/0/more", "g//0", "o/0", "/0"),
    "CONVERT": _append({"commitInfo": {"timestamp": 1, "operation": "CONVERT", "operationParameters": {}}}),
    "no operation": _append({"commitInfo": {}}),
    "a note in our name": _append({"commitInfo": {"operation": "WRITE", "kafka-azimuth": "x"}}),
    "an action of a later protocol": _append(FOREIGN, {"more": {"x": 1}}),
    "an empty entry": _append(),
    "a checkpoint in parts": lambda table: _checkpoint_in_parts(table, missing=False, clean=False),
    "clocks that go back": _clocks_that_go_back,
}

REFUSED: dict[str, Callable[[Path], object]] = {
    "an application without a version": _append(FOREIGN, {"txn": {"appId": "q"}}),
    "an application of nothing": _append(FOREIGN, {"txn": None}),
    "an entry that is a list": _append(FOREIGN, [{"txn": 1}]),
    "half an entry": _half_entry,
    "an entry of other bytes": _binary_entry,
    "a later reader's version": _protocol(99, 99),
    "a later writer's version": _protocol(1, 99),
    "a feature of writers": _protocol(1, 7, writerFeatures=["appendOnly", "invariants", "more"]),
    "a feature of readers": _protocol(3, 7, readerFeatures=["more"], writerFeatures=["more"]),
    "a pointer to no checkpoint": lambda table: (_log(table) / "_last_checkpoint").write_text('{"version":3,"size":9}'),
    "half a checkpoint": _half_checkpoint,
    "half a checkpoint and nothing else": lambda table: _half_checkpoint(table, clean=True),
    "a part of a checkpoint and nothing else": lambda table: _checkpoint_in_parts(table, missing=True, clean=True),
    "an entry is gone": lambda table: _commits(table)[3].unlink(),
    "the newest entries are gone": _newest_gone,
}


def _compact(path: str) -> None:
    table = DeltaLakeTable(path, "g")
    table.refresh()
    table._compaction._compacted = 0
    table.compact(1)


PATHS: dict[str, Callable[[str], object]] = {
    "verify": verify,
    "quarantine": quarantined,
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
    _commit(copy, COMMITS * 10)
    report = verify(str(copy))
    assert (report.ok, report.missing) == (True, 0)
    assert report.rows == COMMITS * 10 + 9  # the replay brought six back


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_or_written_is_refused_with_a_sentence(copy: Path, case: str) -> None:
    """Paths that do not need the broken part may work; none of them writes into the log."""
    REFUSED[case](copy)
    before = {file: file.read_bytes() for file in copy.parent.rglob("_delta_log/*")}
    with pytest.raises(TableError) as refused:
        _commit(copy, COMMITS * 10)
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


# A log without its newest entries is a whole table of an earlier day; only its quarantine shows that it went back, and
# the rewind is what takes that back as well.
WRITES = {("the newest entries are gone", name) for name in ("rewind", "replay", "compaction")}
