"""Fleets and claims decode values as `azimuth sink` does: each record is in the table or in its quarantine."""

import contextlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from assignors.fleet import FleetTopic
from spark_sink.checks import run
from spark_sink.errors import FetchError, SchemaError, TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fleet.decode_and_commit import Committed
from spark_sink.fleet.row_checks import row_checks
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.table_contract import Change, Snapshot
from spark_sink.options import topic_decoders
from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.sink.quarantine.quarantine_replay import replay
from spark_sink.sink.row_options import RowOptions

pytestmark = pytest.mark.long

KINDS: dict[str, Callable[[int], bytes | None]] = {
    "good": lambda n: json.dumps({"id": n}).encode(),
    "not JSON": lambda n: b"{%d" % n,
    "another type": lambda _: b'{"id": "many"}',
    "unknown field": lambda n: json.dumps({"id": n, "more": 1}).encode(),
    "no value": lambda _: None,
}
GOOD = {"quarantine": {"good"}, "ignore": {"good", "unknown field"}}
CRASHES = ["none", "before the table", "after the table", "before the quarantine", "after the quarantine"]


@dataclass(frozen=True)
class Raw:
    """Records of one partition, of these kinds, from offset `begin` on."""

    kinds: Sequence[str]
    begin: int = 0
    topic: str = "x"

    def rows(self, only: set[str]) -> pa.Table:
        """As `RecordBuffer`."""
        rows: list[dict[str, Any]] = [
            {"topic": self.topic, "partition": 0, "offset": at, "key": b"k", "value": KINDS[kind](at)}
            for at, kind in enumerate(self.kinds, self.begin)
            if self.topic in only
        ]
        return pa.Table.from_pylist(rows, schema=arrow_schema(headers=False))


def options(table: str, **given: str) -> RowOptions:
    """JSON with one column."""
    texts = {"valueFormat": "json", "valueSchema": '{"id": "bigint"}', "unknownFields": "quarantine", **given}
    return RowOptions.parse(texts, {}, table=table)


def write(writer: TableWriter, records: Raw) -> Committed:
    """Write records to their table."""
    end = records.begin + len(records.kinds)
    label = {records.topic}
    return writer.commit(writer.land(records, label), [Range(records.topic, 0, records.begin, end)])


def offsets(table: str) -> list[int]:
    """The offsets in a table; none without a table."""
    if not DeltaTable.is_deltatable(table):
        return []
    return sorted(DeltaTable(table).to_pyarrow_table(columns=["offset"])["offset"].to_pylist())


class _Crashed(BaseException):
    """The process ends here."""


def crash_at(place: str) -> Callable[[DeltaLakeTable, Snapshot, Change], None]:
    """`DeltaLakeTable.swap` in a process that ends at one of its commits."""
    swap = DeltaLakeTable.swap

    def crashing(table: DeltaLakeTable, snapshot: Snapshot, change: Change) -> None:
        mine = place.endswith("the quarantine") == table.name.endswith("_quarantine") and place != "none"
        if mine and place.startswith("before"):
            raise _Crashed
        swap(table, snapshot, change)
        if mine:
            raise _Crashed

    return crashing


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("policies", [("quarantine", "ignore"), ("ignore", "quarantine")], ids="-".join)
def test_each_record_is_in_the_table_or_in_its_quarantine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: str, policies: tuple[str, str]
) -> None:
    """Also if a writer dies at a commit and the next one decodes the same records in another way."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 -- a failure shows it
    drawn = random.Random(seed).choices(list(KINDS), k=30)
    table = str(tmp_path / "t")
    first, second = (TableWriter(table, "g", "a", rows=options(table, unknownFields=one)) for one in policies)
    write(first, Raw(drawn[:10]))
    with monkeypatch.context() as patch, contextlib.suppress(_Crashed):
        patch.setattr(DeltaLakeTable, "swap", crash_at(crash))
        write(first, Raw(drawn[10:20], 10))
    write(second, Raw(drawn[10:20], 10))
    write(second, Raw(["not JSON", *drawn[21:]], 20))
    decided = policies[1] if crash == "before the table" else policies[0]
    kept = [at for at in range(20) if drawn[at] in GOOD[policies[0] if at < 10 else decided]]
    kept += [at for at in range(21, 30) if drawn[at] in GOOD[policies[1]]]
    assert offsets(table) == kept
    assert offsets(quarantine_of(table)) == sorted(set(range(30)) - set(kept))
    assert verify(table, "g").ok


def test_bad_records_that_a_dead_writer_named_are_added_by_a_writer_of_raw_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fleet that goes back to raw records must not leave them behind."""
    table = str(tmp_path / "t")
    rows = options(table, valueNull="keep")
    with monkeypatch.context() as patch, contextlib.suppress(_Crashed):
        patch.setattr(DeltaLakeTable, "swap", crash_at("before the quarantine"))
        write(TableWriter(table, "g", "a", rows=rows), Raw(["good", "not JSON"]))
    assert offsets(quarantine_of(table)) == []
    raw = TableWriter(table, "g", "b", rows=RowOptions(merge_schema=True))
    write(raw, Raw(["good"], 2))
    assert (offsets(table), offsets(quarantine_of(table))) == ([0, 2], [1])


def test_a_replay_brings_repaired_records_into_the_table_once(tmp_path: Path) -> None:
    """`azimuth quarantine replay` and `azimuth verify` take the tables of fleets and jobs as those of queries."""
    table = str(tmp_path / "t")
    write(TableWriter(table, "g", "a", rows=options(table)), Raw(["good", "not JSON", "another type", "good"]))

    def repair(records: pa.Table) -> pa.Table:
        kept = records.slice(0, 1)
        return kept.select(["topic", "partition", "offset", "timestamp", "key"]).append_column("id", pa.array([7]))

    done = [replay(table, "g", repair) for _ in range(2)]
    assert [(one.rows, one.left) for one in done] == [(1, 1), (1, 0)]
    assert offsets(table) == [0, 1, 2, 3]
    assert verify(table, "g").ok


def test_a_registry_that_does_not_answer_makes_no_record_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records are read again, and the decoder is asked for again."""
    table = str(tmp_path / "t")
    writer = TableWriter(table, "g", "a", rows=options(table))

    def away(*_: object) -> None:
        raise FetchError("the registry is away")

    with monkeypatch.context() as patch:
        patch.setattr(topic_decoders, "make_value_decoder", away)
        with pytest.raises(FetchError, match="away"):
            writer.label([FleetTopic("c", "1", "x", "s")])
    assert not Path(table).exists()
    write(writer, Raw(["good"]))
    assert (offsets(table), offsets(quarantine_of(table))) == ([0], [])


def test_each_topic_has_its_table_quarantine_and_partition_columns(tmp_path: Path) -> None:
    """`{topic}` in the address, as in a query's `path`."""
    address = str(tmp_path / "{topic}")
    writer = TableWriter(address, "g", "a", rows=options(address, partitionBy="partition"))
    for topic in ("x", "y"):
        write(writer, Raw(["good", "no value"], topic=topic))
    for topic in ("x", "y"):
        table = address.replace("{topic}", topic)
        assert (offsets(table), offsets(quarantine_of(table))) == ([0], [1])
        assert DeltaTable(table).metadata().partition_columns == ["partition"]


def test_a_table_of_raw_records_is_not_changed_by_decoded_ones(tmp_path: Path) -> None:
    """Another format needs another table: half of its rows would have no columns."""
    table = str(tmp_path / "t")
    write(TableWriter(table, "g", "a"), Raw(["good"]))
    assert DeltaLakeTable(table, "g").refresh() is not None
    with pytest.raises(SchemaError, match="'id'"):
        TableWriter(table, "g", "a", rows=options(table)).label([FleetTopic("c", "1", "x", "s")])
    assert not Path(quarantine_of(table)).exists()


def test_a_check_finds_the_column_that_a_table_lacks(tmp_path: Path) -> None:
    """The first commit would be refused, so the check is, too, unless the columns may be added."""
    table = str(tmp_path / "t")
    write(TableWriter(table, "g", "a"), Raw(["good"]))
    answers = {}
    for merge in ("false", "true"):
        (found,) = run(row_checks(options(table, mergeSchema=merge), table, "g", {}, ["x"], None), 60)
        answers[merge] = found.bad, "'id'" in found.text
    assert answers == {"false": (True, True), "true": (False, False)}


def test_a_quarantine_ahead_of_its_table_is_refused(tmp_path: Path) -> None:
    """The table was deleted without it: its records would be there twice."""
    first, second = str(tmp_path / "t"), str(tmp_path / "u")
    write(TableWriter(first, "g", "a", rows=options(first)), Raw(["not JSON"]))
    Path(quarantine_of(first)).rename(quarantine_of(second))
    with pytest.raises(TableError, match="azimuth rewind"):
        write(TableWriter(second, "g", "a", rows=options(second)), Raw(["not JSON"]))


def test_records_that_another_agent_wrote_count_for_that_agent_only(tmp_path: Path) -> None:
    """Two agents read the same records after a rebalance: the sum of what they wrote is what the tables have."""
    table = str(tmp_path / "t")
    first, second = (TableWriter(table, "g", name, rows=options(table)) for name in "ab")
    assert write(first, Raw(["good", "not JSON", "good"])) == Committed(rows=3, quarantined=1)
    same = write(second, Raw(["good", "not JSON"]))
    assert (same.rows, same.quarantined, dict(same.ahead)) == (0, 0, {TopicPartition("x", 0): 3})
    assert write(second, Raw(["good", "good", "not JSON", "good"], 1)) == Committed(rows=2, quarantined=1)
