"""What is published of the quarantine of an Iceberg table, with a Kafka that is a list."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_sink.cli import main
from spark_sink.cli import quarantine as command
from spark_sink.errors import TableError
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.iceberg.catalogs import identifier
from spark_sink.lake.table_addresses import Storage
from spark_sink.sink.quarantine import quarantine_version
from spark_sink.sink.quarantine.dead_letter_publisher import Sent
from spark_sink.sink.quarantine.quarantine_version import Quarantine
from tests.iceberg_batches import Writer
from tests.table_kinds import ADDRESS, catalog, warehouse
from tests.unit.spark_sink.sink.quarantine.test_dead_letter_publisher import Kafka


def _found(root: Path) -> Quarantine:
    found = Quarantine.of(ADDRESS, warehouse(root))
    assert found is not None
    return found


@pytest.mark.parametrize("filtered", [256, 0], ids=["by the scan", "too many partitions for a filter"])
def test_each_record_is_published_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filtered: int) -> None:
    """The next offsets are those of the quarantine's own id, so a second call finds only later records."""
    monkeypatch.setattr(quarantine_version, "_FILTERED", filtered)
    assert Quarantine.of(ADDRESS, warehouse(tmp_path)) is None
    writer, kafka = Writer(tmp_path), Kafka()
    writer.write(0, 10, {2, 5})
    writer.write(0, 5, {1}, partition=1)
    assert kafka.publish(_found(tmp_path)) == Sent(3)
    writer.write(10, 20, {17})
    assert kafka.publish(_found(tmp_path)) == Sent(1)
    assert kafka.publish(_found(tmp_path)) == Sent(0)
    assert kafka.transactions == [[("t", 0, 2), ("t", 0, 5), ("t", 1, 1)], [("t", 0, 17)]]
    assert {one.value for one in kafka.letters} == {b"2", b"5", b"1", b"17"}


def test_a_group_publishes_its_own_records(tmp_path: Path) -> None:
    """Each group has a client of its own, and one record two groups would publish twice."""
    Writer(tmp_path).write(0, 10, {2})
    Writer(tmp_path, "h", "u").write(0, 10, {3})
    kafka = Kafka()
    found = _found(tmp_path)
    own = {group: [row for part in found.above({}, group) for row in part.to_pylist()] for group in ("g", "h")}
    assert {group: [(row["topic"], row["offset"]) for row in rows] for group, rows in own.items()} == {
        "g": [("t", 2)],
        "h": [("u", 3)],
    }
    assert kafka.publish(found) == Sent(1)


def test_a_version_rises_with_each_commit(tmp_path: Path) -> None:
    """A publisher with `--every` reads a quarantine again only if its version is another."""
    writer = Writer(tmp_path)
    writer.write(0, 10, {2})
    before = _found(tmp_path)
    assert (_found(tmp_path).version, _found(tmp_path).id) == (before.version, before.id)
    writer.write(10, 20, {12})
    after = _found(tmp_path)
    assert (after.version > before.version, after.id) == (True, before.id)


def test_a_quarantine_that_was_rolled_back_is_refused(tmp_path: Path) -> None:
    """Records would be missing on the topic, and no line would say so."""
    writer = Writer(tmp_path)
    writer.write(0, 10, {2})
    writer.write(10, 20, {12})
    table = catalog(tmp_path).load_table(identifier(quarantine_of(ADDRESS)).path)
    table.manage_snapshots().set_current_snapshot(table.history()[0].snapshot_id).commit()
    with pytest.raises(TableError, match="events_quarantine: the current snapshot does not descend"):
        _found(tmp_path)


def test_the_command_takes_every_table_of_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `{topic}`, as its other commands do."""
    kafka = Kafka()

    class Publisher:
        """Publishes to the list."""

        def publish(self, table: str, group: str, storage: Storage | None = None) -> Sent:
            """Publish the quarantine of one table."""
            found = Quarantine.of(table, storage)
            assert (found is not None, group) == (True, "g")
            return kafka.publish(found) if found else Sent(0)

    def rounds(_: dict[str, str], __: str, ___: float | None, once: Callable[[Publisher], int]) -> int:
        return once(Publisher())

    monkeypatch.setattr(command, "_rounds", rounds)
    for topic in ("t", "u.v"):
        Writer(tmp_path, topic=topic, more={"path": "iceberg://lake.raw.{topic}"}).write(0, 4, {1})
    storage = f"--storage=catalog.warehouse={tmp_path / 'warehouse'}"
    with pytest.raises(SystemExit) as ended:
        main(
            ["quarantine", "publish", "lake.raw.{topic}", "--topic=x", "--bootstrap-servers=h:1", storage],
        )
    said = capsys.readouterr()
    assert (ended.value.code or 0, said.err) == (0, "")
    assert "2 records published, of 2 tables" in said.out
    assert kafka.transactions == [[("t", 0, 1)], [("u.v", 0, 1)]]
