"""A listing of a log that is behind: a command waits for it, or says so, and never reports an older version."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from spark_sink.errors import TableError
from spark_sink.lake import delta_table, newest_version
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.newest_version import PATIENCE_S, newest_handle
from spark_sink.ranges.batch_offset import TopicPartition
from tests.table_kinds import SCHEMA, rows_of

A = TopicPartition("a", 0)
NEWEST = 2


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table with the versions 0 to 2."""
    for begin in range(0, 9, 3):
        write_deltalake(tmp_path, pa.Table.from_batches([rows_of(A, range(begin, begin + 3))], SCHEMA), mode="append")
    return str(tmp_path)


class _Clock:
    """A clock that only the waiting moves; stands for the module `time`."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def _lagging(patch: pytest.MonkeyPatch, clock: _Clock, until_s: float, seen: int) -> None:
    """Let tables be opened at a version, and stay there until a time."""

    class _Late(DeltaTable):
        def __init__(self, uri: str, **options: Any) -> None:
            late = clock.now < until_s
            if late and seen < 0:
                raise TableNotFoundError(uri)
            super().__init__(uri, version=seen if late else None, **options)

        def update_incremental(self) -> None:
            if clock.now >= until_s:
                super().update_incremental()

    patch.setattr(newest_version, "DeltaTable", _Late)
    patch.setattr(delta_table, "DeltaTable", _Late)
    patch.setattr(newest_version, "time", clock)


@pytest.mark.parametrize("seen", range(NEWEST + 1))
def test_a_listing_that_catches_up_is_awaited(uri: str, monkeypatch: pytest.MonkeyPatch, seen: int) -> None:
    """A rewind that sees the version before a RESTORE would find no position that is ahead of the rows."""
    clock = _Clock()
    _lagging(monkeypatch, clock, PATIENCE_S / 2, seen)
    assert newest_handle(uri, None).version() == NEWEST
    assert (clock.now > 0) == (seen < NEWEST)


def test_a_listing_that_stays_behind_is_an_error(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what cannot be seen; `nothing to do` would be wrong."""
    clock = _Clock()
    _lagging(monkeypatch, clock, float("inf"), 1)
    for look in (lambda: newest_handle(uri, None), DeltaLakeTable(uri, "g").newest):
        begin = clock.now
        with pytest.raises(TableError, match=rf"^{uri}: the store lists versions up to 1, and version 2 is there"):
            look()
        assert clock.now >= begin + PATIENCE_S


@pytest.mark.parametrize("seen", range(-1, NEWEST + 1))
def test_a_table_waits_for_its_newest_version(uri: str, monkeypatch: pytest.MonkeyPatch, seen: int) -> None:
    """Also where the listing lacks the whole table: a query would take it for a deleted one."""
    clock = _Clock()
    _lagging(monkeypatch, clock, PATIENCE_S / 2, seen)
    table = DeltaLakeTable(uri, "g")
    listed, newest = table.refresh(), table.newest()
    assert (listed.version if listed else -1) == seen
    assert newest
    assert newest.version == NEWEST


def test_there_is_no_newest_version_without_a_table(tmp_path: Path) -> None:
    """It is not awaited."""
    assert DeltaLakeTable(str(tmp_path / "none"), "g").newest() is None
