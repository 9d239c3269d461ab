"""A rewind after a RESTORE takes the positions of the version that came back, and bad records below them stay."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from assignors.fleet import FleetTopic
from spark_sink.errors import TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.positions_in_delta_log import positions
from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.sink.rewind.delta_rewind import rewind
from spark_sink.sink.rewind.set_back_positions import Rewound
from spark_sink.sink.row_options import RowOptions

GOOD, POISON = TopicPartition("good", 0), TopicPartition("poison", 0)


class Records:
    """Records of one topic; those of the topic `poison` cannot be decoded."""

    def __init__(self, topic: str, begin: int, end: int, gap: int = 0) -> None:
        values = [b"{" if topic == "poison" else json.dumps({"id": at}).encode() for at in range(begin + gap, end)]
        rows = [
            {"topic": topic, "partition": 0, "offset": at, "value": value}
            for at, value in enumerate(values, begin + gap)
        ]
        self.range = Range(topic, 0, begin, end)
        self._rows = pa.Table.from_pylist(rows, schema=arrow_schema(headers=False))

    def rows(self, only: set[str]) -> pa.Table:
        """As `RecordBuffer`."""
        return self._rows if self.range.topic in only else self._rows.slice(0, 0)


class Writer:
    """Writes two topics into one table."""

    def __init__(self, table: Path) -> None:
        self.table = str(table)
        options = {"valueFormat": "json", "valueSchema": '{"id": "bigint"}'}
        self._writer = TableWriter(self.table, "g", "a", rows=RowOptions.parse(options, {}, table=self.table))
        self._writer.label([FleetTopic("c", "1", one, "s") for one in ("good", "poison")])

    def write(self, topic: str, begin: int, end: int, gap: int = 0) -> int:
        """Commit records, after offsets without one; return the table's version."""
        records = Records(topic, begin, end, gap)
        self._writer.commit(self._writer.land(records, {topic}), [records.range])
        return DeltaTable(self.table).version()

    def bad(self) -> int:
        """How many records are in quarantine."""
        return len(DeltaTable(quarantine_of(self.table)).to_pyarrow_table())


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    """A table with 10 good records, and 10 bad ones in quarantine."""
    one = Writer(tmp_path / "t")
    one.write("poison", 0, 10)
    one.write("good", 0, 10)
    return one


def test_a_partition_of_bad_records_that_a_restore_did_not_touch_keeps_them(writer: Writer) -> None:
    """Kafka may not have them any more: without them in quarantine they would be nowhere."""
    version = DeltaTable(writer.table).version()
    writer.write("good", 10, 20)
    DeltaTable(writer.table).restore(version)
    assert rewind(writer.table, "g", apply=True) == [Rewound(key=GOOD, before=20, after=10)]
    assert (writer.bad(), positions(writer.table, "g")) == (10, {GOOD: 10, POISON: 10})
    again = Writer(Path(writer.table))
    again.write("good", 10, 20)
    again.write("poison", 10, 12)
    assert writer.bad() == 12
    assert verify(writer.table, "g").ok


def test_a_restore_to_a_version_after_an_earlier_restore_counts_what_that_one_brought_back(writer: Writer) -> None:
    """A version between a RESTORE and its rewind has positions that are ahead of its rows."""
    oldest = DeltaTable(writer.table).version()
    newest = writer.write("good", 10, 20)
    DeltaTable(writer.table).restore(oldest)
    DeltaTable(writer.table).restore(newest)
    DeltaTable(writer.table).restore(newest + 1)
    assert rewind(writer.table, "g", apply=True) == [Rewound(key=GOOD, before=20, after=10)]
    assert writer.bad() == 10


def test_positions_of_a_version_whose_rows_were_deleted_since_are_not_taken(writer: Writer) -> None:
    """Another writer's DELETE after the RESTORE: then only the rows tell."""
    version = DeltaTable(writer.table).version()
    writer.write("good", 10, 20)
    DeltaTable(writer.table).restore(version)
    DeltaTable(writer.table).delete('"offset" >= 5')
    found = {one.key: one.after for one in rewind(writer.table, "g", apply=True)}
    assert (found, writer.bad()) == ({GOOD: 5, POISON: 0}, 0)


def test_rows_that_were_deleted_between_two_restores_leave_no_hole(writer: Writer) -> None:
    """A person deletes rows, as a rewind tells, and later brings a version before the end of that rewind back."""
    oldest = DeltaTable(writer.table).version()
    newest = writer.write("good", 10, 20)
    DeltaTable(writer.table).restore(oldest)
    rewind(writer.table, "g", apply=True)
    DeltaTable(writer.table).restore(newest)
    with pytest.raises(TableError, match="delete the rows of this partition from offset 10 on"):
        rewind(writer.table, "g", apply=True)
    DeltaTable(writer.table).delete("topic = 'good' AND \"offset\" >= 10")
    deleted = DeltaTable(writer.table).version()
    rewind(writer.table, "g", apply=True)
    again = Writer(Path(writer.table))
    again.write("good", 10, 30)
    DeltaTable(writer.table).restore(deleted)
    assert Rewound(key=GOOD, before=30, after=10) in rewind(writer.table, "g", apply=True)


def test_a_rewind_of_a_healthy_table_changes_nothing(writer: Writer) -> None:
    """Its newest records may be bad: they are where they belong."""
    writer.write("poison", 10, 30)
    assert rewind(writer.table, "g", apply=True) == []
    assert (writer.bad(), positions(writer.table, "g")) == (30, {GOOD: 10, POISON: 30})


def test_what_a_restore_of_the_quarantine_took_is_put_back_and_stays(writer: Writer) -> None:
    """It was put back and removed again at once, because no row follows it."""
    version = DeltaTable(quarantine_of(writer.table)).version()
    writer.write("poison", 10, 30)
    DeltaTable(quarantine_of(writer.table)).restore(version)
    assert rewind(writer.table, "g", apply=True) == []
    assert (writer.bad(), positions(writer.table, "g")) == (30, {GOOD: 10, POISON: 30})


def test_bad_records_after_a_gap_are_read_again_with_a_word(writer: Writer) -> None:
    """What was between them may be a row that another writer deleted."""
    writer.write("poison", 10, 15, gap=2)
    told: list[str] = []
    assert {one.key: one.after for one in rewind(writer.table, "g", apply=True, tell=told.append)} == {POISON: 10}
    (sentence,) = told
    assert sentence.startswith(f"{quarantine_of(writer.table)}: 3 bad records from the new positions on were removed")
    assert writer.bad() == 10
