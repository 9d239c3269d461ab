"""Fleets and claims write Iceberg tables as they write Delta tables."""

from pathlib import Path

import pytest

from assignors.fleet import FleetTopic
from spark_sink import positions
from spark_sink.errors import HoleError
from spark_sink.fleet import table_writer
from spark_sink.fleet.decode_and_commit import Committed
from spark_sink.fleet.quarantine_counts import quarantined_rows
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.ranges.batch_offset import Range, TopicPartition
from tests.table_kinds import peer, warehouse
from tests.unit.spark_sink.fleet.test_decoded_tables import Raw, options, write
from tests.unit.spark_sink.fleet.test_table_writer import some

EACH, ALL = "iceberg://lake.raw.{topic}", "iceberg://lake.raw.events"


@pytest.mark.parametrize("address", [ALL, EACH], ids=["one table", "a table each"])
def test_the_position_of_a_recreated_topic_is_found(tmp_path: Path, address: str) -> None:
    """Its id has characters that the name of a table cannot have; its rows are not those of the former topic."""
    writer = TableWriter(address, "g", "a", warehouse(tmp_path))
    first, second = FleetTopic("c", "1", "x.y", "s"), FleetTopic("c", "a/b+c", "x.y", "s")
    assert writer.label([first]) == {first: "x.y"}
    label = writer.label([second])[second]
    assert label == f"x.y@{second.printed_id}"
    for one in ("x.y", label):
        rows = some(one, 0, 3)
        assert writer.commit(writer.land(rows, {one}), [Range(one, 0, 0, 3)]) == Committed(rows=3)
        assert writer.commit(writer.land(rows, {one}), [Range(one, 0, 0, 3)]) == Committed()  # a replay
        assert writer.positions({one}) == {TopicPartition(one, 0): 3}
    assert positions(address, "g", warehouse(tmp_path)) == {TopicPartition(one, 0): 3 for one in ("x.y", label)}


def test_topics_whose_names_differ_by_a_hyphen_share_a_table(tmp_path: Path) -> None:
    """Names of tables have letters, digits and underscores only; the positions tell the topics apart."""
    writer = TableWriter(EACH, "g", "a", warehouse(tmp_path))
    assert sorted(map(sorted, writer.apart(["a-b", "a_b"]))) == [["a-b"], ["a_b"]]
    for label in ("a-b", "a_b"):
        writer.commit(writer.land(some(label, 0, 3), {label}), [Range(label, 0, 0, 3)])
    report = verify("iceberg://lake.raw.a_b", "g", warehouse(tmp_path))
    assert (report.rows, len(report.findings), report.ok) == (6, 2, True)
    assert positions(EACH, "g", warehouse(tmp_path)) == dict.fromkeys(
        [TopicPartition("a-b", 0), TopicPartition("a_b", 0)], 3
    )


def test_a_batch_behind_a_hole_is_refused_and_a_part_is_trimmed(tmp_path: Path) -> None:
    """The same verdicts as for Delta tables: two writers that do not know each other read overlapping ranges."""
    one, two = (TableWriter(ALL, "g", name, warehouse(tmp_path)) for name in "ab")
    one.commit(one.land(some("x", 0, 5), {"x"}), [Range("x", 0, 0, 5)])
    two.commit(two.land(some("x", 3, 8), {"x"}), [Range("x", 0, 3, 8)])
    with pytest.raises(HoleError):
        one.commit(one.land(some("x", 9, 10), {"x"}), [Range("x", 0, 9, 10)])
    report = verify(ALL, "g", warehouse(tmp_path))
    assert (report.rows, report.duplicates, report.missing) == (8, 0, 0)


def test_decoded_records_are_in_the_table_or_in_its_quarantine(tmp_path: Path) -> None:
    """As `azimuth sink` writes them, and the agent's count of its quarantines finds them."""
    storage = warehouse(tmp_path)
    writer = TableWriter(ALL, "g", "a", storage, rows=options(ALL))
    write(writer, Raw(["good", "not JSON", "good"]))
    write(writer, Raw(["another type", "good"], 3))
    assert sorted(peer(tmp_path).scan().to_arrow()["id"].to_pylist()) == [0, 2, 4]
    assert quarantined_rows(quarantine_of(ALL), storage) == 2
    assert quarantined_rows("iceberg://lake.raw.none_quarantine", storage) == 0
    report = verify(ALL, "g", storage)
    assert (report.rows, report.ok) == (3, True)


def test_old_snapshots_expire_beside_the_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in a separate thread with a separate handle, as the compaction of a Delta table."""
    monkeypatch.setattr(table_writer, "_COMPACT_AFTER", 1)
    monkeypatch.setattr(table_writer, "_COMPACT_EVERY", 4)
    writer = TableWriter(ALL, "g", "a", warehouse(tmp_path))
    for offset in range(10):
        writer.commit(writer.land(some("x", offset, offset + 1), {"x"}), [Range("x", 0, offset, offset + 1)])
        compacting = writer._compactions._thread
        assert compacting is not None
        compacting.join(30)
    assert len(peer(tmp_path).metadata.snapshots) <= 6
    assert verify(ALL, "g", warehouse(tmp_path)).rows == 10
