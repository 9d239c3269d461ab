"""Writers whose store lists new versions of a Delta table late: none refuses, doubles or loses a record for that."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from assignors.fleet import FleetTopic
from spark_sink.checks import check_table
from spark_sink.errors import TableError
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.lake import delta_table, newest_version
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.table_contract import DataFile, create_and_look
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, Outcome, commit
from spark_sink.sink.foreach_batch_write import BatchWrite
from tests.table_kinds import SCHEMA, Kind, kind_of

A = TopicPartition("a", 0)
WIDE = SCHEMA.append(pa.field("more", pa.int64()))


class Listing:
    """What the store lists.

    Attributes:
        lacks: number of versions that are not listed yet.
        looks: number of looks after which all are listed.
    """

    lacks = 0
    looks = 0

    def newest(self, uri: str) -> int | None:
        """Return the newest version that is listed, -1 for none; None if all are listed. Counts as a look."""
        if self.looks <= 0:
            return None
        self.looks -= 1
        return len(list(Path(uri, "_delta_log").glob("*.json"))) - 1 - self.lacks

    def lag(self, lacks: int, looks: int) -> None:
        """Let the next looks lack the newest versions."""
        self.lacks, self.looks = lacks, looks


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> Listing:
    """The listing of all Delta tables; nothing waits."""
    listed = Listing()

    class Late(DeltaTable):
        def __init__(self, uri: str, **more: Any) -> None:
            newest = listed.newest(uri)
            if newest is not None and newest < 0:
                raise TableNotFoundError(uri)
            super().__init__(uri, **{"version": newest, **more})

        def update_incremental(self) -> None:
            newest = listed.newest(self.table_uri)
            if newest is None:
                super().update_incremental()
            elif newest > self.version():
                self.load_as_version(newest)

    monkeypatch.setattr(delta_table, "DeltaTable", Late)
    monkeypatch.setattr(newest_version, "_PAUSE_S", 0.0)
    return listed


def _batch(write: Callable[[TopicPartition, range], Any], begin: int, end: int) -> Batch:
    files = [write(A, range(begin, end))]
    return Batch(offset=Offset.of([Range("a", 0, begin, end)]), files=files, schema=SCHEMA)


def _widened(kind: Kind) -> str:
    """Make a table of one batch, and add a column; return its address."""
    table = kind.make()
    commit(table, _batch(kind.write, 0, 3))
    DeltaLakeTable(table.name, "g").add_columns(WIDE)
    return table.name


def _at_once(_: float) -> None:
    """Do not wait."""


def test_a_table_of_this_process_is_no_deleted_one_before_it_is_listed(tmp_path: Path, listing: Listing) -> None:
    """Its first commit created the table, and the next batch comes at once."""
    kind = kind_of("delta", tmp_path)
    table = kind.make()
    commit(table, _batch(kind.write, 0, 3))
    listing.lag(1, 3)
    assert commit(table, _batch(kind.write, 3, 6), sleep=_at_once).rows == 3


def test_a_table_made_by_another_writer_is_not_gone_before_it_is_listed(tmp_path: Path, listing: Listing) -> None:
    """Its creation is refused, so it is there."""
    kind = kind_of("delta", tmp_path)
    kind.make().create(SCHEMA)
    listing.lag(1, 3)
    assert create_and_look(kind.make(), SCHEMA).version == 0


def test_columns_that_another_writer_has_added_are_not_refused(tmp_path: Path, listing: Listing) -> None:
    """The version with them is listed late."""
    kind = kind_of("delta", tmp_path)
    table = _widened(kind)
    batch = _batch(kind.write, 3, 6)
    listing.lag(1, 3)
    wide = Batch(offset=batch.offset, files=batch.files, schema=WIDE)
    assert commit(DeltaLakeTable(table, "g"), wide, sleep=_at_once).rows == 3


def test_a_listing_that_stays_behind_is_no_other_writer(
    tmp_path: Path, listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer agents would not help."""
    kind = kind_of("delta", tmp_path)
    for begin in (0, 3):
        commit(kind.make(), _batch(kind.write, begin, begin + 3))
    monkeypatch.setattr(newest_version, "PATIENCE_S", 0.0)
    listing.lag(1, 10_000)
    with pytest.raises(TableError, match="the store lists versions up to 0, and version 1 is there"):
        commit(kind.make(), _batch(kind.write, 3, 6), sleep=_at_once)


def test_a_log_of_this_process_has_not_gone_back_before_it_is_listed(
    tmp_path: Path, listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handle was opened again, as after a cleanup of the log."""
    kind = kind_of("delta", tmp_path)
    table = kind.make()
    for begin in (0, 3, 6):
        commit(table, _batch(kind.write, begin, begin + 3))
    table.refresh()
    with monkeypatch.context() as patch:
        patch.setattr("spark_sink.lake.delta_log_reader.TransactionLog.moved", lambda _: True)
        listing.lag(1, 3)
        snapshot = table.refresh()
    assert snapshot
    assert snapshot.positions == {A: 9}


def test_an_agent_waits_for_the_names_of_topics_that_another_one_has_noted(tmp_path: Path, listing: Listing) -> None:
    """It would try to note them itself, and give up as if others were faster each time."""
    topic = FleetTopic("c", "1", "x", "s")
    TableWriter(str(tmp_path / "t"), "g", "a").label([topic])
    listing.lag(1, 60)
    assert TableWriter(str(tmp_path / "t"), "g", "b").label([topic]) == {topic: "x"}


def test_rows_of_a_refused_write_are_not_lost_while_the_refusal_is_listed_late(
    tmp_path: Path, listing: Listing
) -> None:
    """The next run writes the other part only, which looks like a replay until the refusal is seen."""
    kind = kind_of("delta", tmp_path)
    odd, even = ([kind.write(A, range(at, at + 1)) for at in range(begin, 4, 2)] for begin in (1, 0))

    def write(files: Sequence[DataFile], run: str) -> Outcome:
        offset = Offset.of([Range("a", 0, 0, 4)])
        one = Batch(offset=offset, files=files, schema=SCHEMA, number=0, write=BatchWrite.of("c", 0, run))
        return commit(kind.make(), one, sleep=_at_once)

    write(even, "first")
    with pytest.raises(TableError, match="already written a part of batch 0"):
        write(odd, "first")
    listing.lag(1, 3)
    with pytest.raises(TableError, match="an earlier run wrote another part of batch 0"):
        write(odd, "second")


def test_the_check_before_a_start_sees_columns_that_are_listed_late(tmp_path: Path, listing: Listing) -> None:
    """The table lacks none of them."""
    table = _widened(kind_of("delta", tmp_path))
    listing.lag(1, 3)
    assert table in check_table(table, "g", {}, WIDE, selected=lambda _: True)
