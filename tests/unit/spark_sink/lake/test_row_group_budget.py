"""Memory of a task that writes many tables."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake import row_group_budget
from spark_sink.lake.parquet_landing import Landing, Layout
from spark_sink.lake.table_storage import filesystem

SCHEMA = arrow_schema(headers=False)
TABLES = 24
BUDGET = 400_000


def rows(table: int, begin: int) -> pa.RecordBatch:
    """Ten records of 1,000 bytes; the first tables get more than the others, as topics do."""
    count = 10 if table % 3 else 20
    values = [
        {"topic": f"t{table}", "partition": 0, "offset": begin * 20 + n, "value": b"v" * 1000} for n in range(count)
    ]
    return pa.RecordBatch.from_pylist(values, schema=SCHEMA)


def test_the_tables_of_a_task_share_one_budget_of_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each open file held 32 MB: 24 tables took 551 MB. Rows stay complete, and the fullest files write first."""
    monkeypatch.setattr(row_group_budget, "BUDGET_BYTES", BUDGET)
    landings = [Landing(filesystem(str(tmp_path / f"t{n}"), make=True), SCHEMA, Layout()) for n in range(TABLES)]
    given, most = [0] * TABLES, 0
    for number in range(12):
        for table, landing in enumerate(landings):
            batch = rows(table, number)
            given[table] += batch.num_rows
            landing.write(batch)
            most = max(most, sum(file.held_bytes for file in row_group_budget._files.open))
    assert BUDGET / 2 < most <= BUDGET, "3.9 MB without a budget"
    for table, landing in enumerate(landings):
        (file,) = landing.close()
        found = pq.ParquetFile(tmp_path / f"t{table}" / file.path).metadata
        assert (found.num_rows, file.rows) == (given[table], given[table])
        assert 1 < found.num_row_groups <= 12


def test_a_file_that_was_abandoned_is_not_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker's process runs many tasks, and some of them fail."""
    monkeypatch.setattr(row_group_budget, "BUDGET_BYTES", BUDGET)
    before = len(row_group_budget._files.open)
    landing = Landing(filesystem(str(tmp_path / "failed"), make=True), SCHEMA, Layout())
    landing.write(rows(0, 0))
    assert len(row_group_budget._files.open) == before + 1
    del landing
    assert len(row_group_budget._files.open) == before


class Watched:
    """An open file that counts how often it is looked at."""

    def __init__(self) -> None:
        self.bytes = self.looks = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of its rows."""
        self.looks += 1
        return self.bytes

    def flush(self) -> None:
        """Hold no rows."""
        self.bytes = 0


def test_a_write_seldom_looks_at_the_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 300 tables a sum over all open files took a third of the time of landing; the budget holds without it."""
    monkeypatch.setattr(row_group_budget, "BUDGET_BYTES", BUDGET)
    monkeypatch.setattr(row_group_budget, "_files", row_group_budget._Files())
    files = [Watched() for _ in range(100)]
    for file in files:
        row_group_budget.count(file)
    for _ in range(30):
        for file in files:
            file.bytes += 1000
            row_group_budget.limit(1000)
            assert sum(one.bytes for one in files) <= BUDGET
    assert sum(file.looks for file in files) < 25 * 30 * len(files)
