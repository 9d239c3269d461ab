"""Rows that a foreign OPTIMIZE doubled go, and no other row does."""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_sink.errors import TableError
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake import delta_files, fenced_replacement
from spark_sink.lake.compaction import Compaction
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.double_row_removal import Repaired
from spark_sink.lake.double_row_removal import repair as repair_tables
from spark_sink.lake.file_rewrite import Rewrite, table_files, write_rewrite
from spark_sink.lake.table_storage import filesystem
from tests.unit.spark_sink.lake.deletion_vectors import delete_by_vector
from tests.unit.spark_sink.sink.foreign_logs import commits

SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.float64())])


def _append(path: str, offsets: Sequence[int], value: float = 1.5, by: list[str] | None = None) -> None:
    columns = [["t"] * len(offsets), [one % 2 for one in offsets], offsets, [value] * len(offsets)]
    arrays = [pa.array(one, field.type) for one, field in zip(columns, SCHEMA, strict=True)]
    write_deltalake(path, pa.Table.from_arrays(arrays, schema=SCHEMA), mode="append", partition_by=by)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Six files of five rows."""
    path = str(tmp_path / "table")
    for number in range(6):
        _append(path, range(number * 5, number * 5 + 5))
    return path


def repair(path: str, *, apply: bool = True, within_files: bool = True) -> list[Repaired]:
    """Repair the table and its quarantine."""
    return list(repair_tables(path, apply=apply, within_files=within_files))


def _rows(path: str) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in DeltaTable(path).to_pyarrow_table().to_pylist())


def _compact(path: str) -> bool:
    ours = Compaction(path, TransactionLog(path))
    ours._compacted = 0
    ours._claim = lambda *_: True  # type: ignore[method-assign]  # an OPTIMIZE lately does not keep it off here
    return ours.run(DeltaTable(path), 1)


def _optimize(handle: DeltaTable) -> None:
    handle.optimize.compact()


DOUBLINGS: dict[str, Callable[[str], None]] = {}


def _doubling(make: Callable[[str], None]) -> Callable[[str], None]:
    DOUBLINGS[make.__name__.strip("_").replace("_", " ")] = make
    return make


@_doubling
def _optimize_after_our_compaction(path: str) -> None:
    late = DeltaTable(path)
    assert _compact(path)
    _optimize(late)


@_doubling
def _optimize_of_more_files_than_we_joined(path: str) -> None:
    late = DeltaTable(path)
    files, handle = filesystem(path), DeltaTable(path)
    three = list(table_files(handle))[:3]
    assert fenced_replacement.replace_files(handle, [write_rewrite(files, three, SCHEMA)], {})
    _optimize(late)


@_doubling
def _optimize_of_other_files_than_we_joined(path: str) -> None:
    late = DeltaTable(path)
    _append(path, range(30, 35))
    files, handle = filesystem(path), DeltaTable(path)
    mixed = sorted(table_files(handle), key=lambda one: one.path)
    newest = next(one for one in mixed if one.path not in {old.path for old in table_files(late)})
    assert fenced_replacement.replace_files(handle, [write_rewrite(files, [newest, *mixed[:2]], SCHEMA)], {})
    _optimize(late)


@_doubling
def _two_optimize_loops(path: str) -> None:
    for first in (30, 35):
        late = DeltaTable(path)
        _append(path, range(first, first + 5))
        _optimize(DeltaTable(path))
        _optimize(late)


@_doubling
def _an_optimize_that_joins_both_copies(path: str) -> None:
    late = DeltaTable(path)
    assert _compact(path)
    _optimize(late)
    _optimize(DeltaTable(path))


@_doubling
def _three_copies(path: str) -> None:
    late, later = DeltaTable(path), DeltaTable(path)
    assert _compact(path)
    _optimize(late)
    _optimize(later)


@pytest.mark.parametrize("doubling", DOUBLINGS)
@pytest.mark.parametrize(
    "by", [pytest.param(None, id="flat"), pytest.param(["partition"], id="partition folders", marks=pytest.mark.slow)]
)
def test_repair_takes_out_each_double_and_nothing_else(tmp_path: Path, doubling: str, by: list[str] | None) -> None:
    """Doubled rows lie in whole files, in parts of files, or twice in one file."""
    path = str(tmp_path / "table")
    for number in range(6):
        _append(path, range(number * 5, number * 5 + 5), float("nan") if number == 2 else 1.5, by)
    DOUBLINGS[doubling](path)
    doubled = _rows(path)
    once = Counter(doubled.keys())
    assert doubled != once
    shown = repair(path, apply=False)
    assert _rows(path) == doubled
    assert [one.rows for one in shown] == [doubled.total() - once.total()]
    [done] = repair(path)
    assert (done.rows, done.different) == (shown[0].rows, 0)
    assert _rows(path) == once
    assert repair(path)[0].files == []


@pytest.mark.parametrize("doubling", DOUBLINGS)
def test_an_agent_reports_a_doubling_once_and_removes_no_row(
    table: str, doubling: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says that rows may be there twice; which of them are, and whether a query wrote them, it does not say."""
    agent = DeltaLakeTable(table, "g")
    agent.refresh()
    DOUBLINGS[doubling](table)
    before = _rows(table)
    for _ in range(2):
        agent.refresh()
        agent.compact(1_000)
    assert _rows(table) == before
    assert [one.getMessage().count("`azimuth repair`") for one in caplog.records if "twice" in one.getMessage()] == [1]


def test_removals_and_a_restore_in_turn_are_no_doubling(table: str) -> None:
    """RESTORE brings files back, so that they are removed a second time."""
    log = TransactionLog(table)
    handle = DeltaTable(table)
    for _ in range(2):
        handle.delete("offset < 5")
        handle.restore(5)
    handle.optimize.compact()
    log.refresh()
    assert not log.doubled


def test_equal_rows_of_one_file_stay_unless_asked_for(table: str) -> None:
    """A query that makes several rows of one record wrote them; their copy in another file is a double."""
    path = f"{table}-exploded"
    for first in (0, 5):
        _append(path, [one for one in range(first, first + 5) for _ in range(3)])
    once = _rows(path)
    late = DeltaTable(path)
    assert _compact(path)
    _optimize(late)
    assert _rows(path) == once + once
    [done] = repair(path, within_files=False)
    assert _rows(path) == once
    assert done.rows == 30
    [done] = repair(path, within_files=False)
    assert (done.rows, done.repeated) == (0, 20)
    assert _rows(path) == once


@pytest.mark.parametrize("value", ["a b", "a:b", "100%", "a%20b", "a/b", "a+b", "it's", "\u00e4"])
def test_files_in_folders_of_any_partition_value_are_removed(tmp_path: Path, value: str) -> None:
    """Paths in the log are escaped: an action with another spelling removes nothing, and the repair would add rows."""
    path = str(tmp_path / "table")
    schema = pa.schema([*list(SCHEMA)[:3], ("value", pa.string())])
    for first in range(0, 10, 5):
        rows = [{"topic": "t", "partition": 0, "offset": first + one, "value": value} for one in range(5)]
        write_deltalake(path, pa.Table.from_pylist(rows, schema), mode="append", partition_by=["value"])
    once = _rows(path)
    late = DeltaTable(path)
    _optimize(DeltaTable(path))
    _optimize(late)
    assert _rows(path) == once + once
    [done] = repair(path, within_files=False)
    assert done.rows == 10
    assert _rows(path) == once


def test_a_table_that_maps_its_columns_is_refused(table: str) -> None:
    """A file has the names of its time: values under an older name would read as null, and any two rows as equal."""
    first = Path(table) / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    metadata = next(one["metaData"] for one in actions if "metaData" in one)
    schema = json.loads(metadata["schemaString"])
    for number, column in enumerate(schema["fields"], 1):
        column["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": column["name"],
        }
    schema["fields"][3]["name"] = "renamed"
    metadata["schemaString"] = json.dumps(schema)
    metadata["configuration"] = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "4"}
    renamed = [{"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": metadata}]
    (first.parent / f"{6:020}.json").write_text("".join(f"{json.dumps(one)}\n" for one in renamed))
    with pytest.raises(TableError, match="maps its columns by name"):
        repair(table)
    assert DeltaTable(table).version() == 6


def test_rows_of_one_offset_with_other_values_stay(table: str) -> None:
    """A rewrite of files changes no value, so these are no doubles of its making."""
    _append(table, range(5), value=2.5)
    before = _rows(table)
    [done] = repair(table)
    assert (done.rows, done.different) == (0, 5)
    assert _rows(table) == before


def test_a_table_whose_rows_have_no_offsets_is_refused(tmp_path: Path) -> None:
    """Equal rows may be two records."""
    path = str(tmp_path / "table")
    for _ in range(3):
        write_deltalake(path, pa.table({"topic": ["t"], "partition": [0], "value": [1.5]}), mode="append")
    late = DeltaTable(path)
    _optimize(DeltaTable(path))
    _optimize(late)
    before = _rows(path)
    with pytest.raises(TableError, match="no column 'offset', so nothing says which of its rows are there twice"):
        repair(path)
    assert _rows(path) == before


def test_the_quarantine_is_repaired_as_well(table: str) -> None:
    """It is a separate table, and an OPTIMIZE job processes all tables."""
    quarantine = quarantine_of(table)
    for number in range(3):
        _append(quarantine, [number])
    late = DeltaTable(quarantine)
    _optimize(DeltaTable(quarantine))
    _optimize(late)
    assert [one.rows for one in repair(table)] == [0, 3]
    assert _rows(quarantine).total() == 3


MEANWHILE: dict[str, Callable[[str], object]] = {
    "OPTIMIZE": lambda path: DeltaTable(path).optimize.compact(),
    "a compaction of ours": _compact,
    "another repair": repair,
    "DELETE": lambda path: DeltaTable(path).delete("offset = 7"),
    "DELETE of all": lambda path: DeltaTable(path).delete(),
    "RESTORE": lambda path: DeltaTable(path).restore(4),
    "append": lambda path: _append(path, range(30, 35)),
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_another_writer_during_a_repair_loses_and_doubles_nothing(
    table: str, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """The file that keeps a row may be gone when the one that loses it is taken out."""
    DOUBLINGS["optimize after our compaction"](table)
    pending = [MEANWHILE[meanwhile]]
    expected: list[Counter[str]] = []

    def slow(handle: DeltaTable, rewrites: Sequence[Rewrite], *more: object, **others: object) -> bool:
        if pending:
            pending.pop()(table)
            expected.append(Counter(_rows(table).keys()))
        return fenced_replacement.replace_files(handle, rewrites, *more, **others)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(delta_files, "replace_files", slow)
    repair(table)
    assert _rows(table) == expected[0]


def test_a_repair_that_goes_on_late_brings_no_deleted_row_back(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files keep their paths when a deletion vector takes rows out of them: of both copies here."""
    DOUBLINGS["optimize after our compaction"](table)
    entries: list[int] = []

    def slow(handle: DeltaTable, rewrites: Sequence[Rewrite], *more: object, **others: object) -> bool:
        delete_by_vector(table)
        entries.append(len(commits(Path(table))))
        return fenced_replacement.replace_files(handle, rewrites, *more, **others)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(delta_files, "replace_files", slow)
    with pytest.raises(TableError, match="the table was not repaired: the table has the feature deletionVectors"):
        repair(table)
    assert [len(commits(Path(table)))] == entries


@pytest.mark.parametrize("seed", [0, 5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 40))])
def test_no_row_is_lost_whatever_writers_do(tmp_path: Path, seed: int) -> None:
    """Late OPTIMIZEs, our compactions, appends and repairs in any order."""
    chance, path = random.Random(seed), str(tmp_path / "table")
    written = 0
    handles: list[DeltaTable] = []
    steps: list[Callable[[], object]] = [
        lambda: handles.append(DeltaTable(path)),
        lambda: _optimize(handles.pop()) if handles else None,
        lambda: _compact(path),
        lambda: repair(path, within_files=False),
        lambda: repair(path),
    ]
    for _ in range(14):
        if written < 10 or chance.random() < 0.4:
            _append(path, range(written, written + 5))
            written += 5
        else:
            chance.choice(steps)()
    assert sorted({row["offset"] for row in DeltaTable(path).to_pyarrow_table().to_pylist()}) == list(range(written))
    repair(path)
    assert set(_rows(path).values()) == {1}
    assert _rows(path).total() == written
