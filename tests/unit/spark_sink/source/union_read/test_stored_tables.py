"""An opened table keeps its rows while its writers commit, compact it and remove old versions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import DataScan, FileScanTask

from spark_sink.errors import TableError
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.iceberg import compaction
from spark_sink.lake.iceberg.catalogs import iceberg_address, identifier, open_catalog
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.table_contract import Change
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.union_read import union_reader
from spark_sink.source.union_read.table_query import query
from spark_sink.source.union_read.union_reader import Union, open_union
from spark_sink.source.union_read.unread_ranges import Unread
from tests.table_kinds import SCHEMA, rows_of, warehouse
from tests.unit.spark_sink.lake.deletion_vectors import delete_by_vector

TOPICS, ROWS = ("a", "z"), 10


@dataclass(frozen=True)
class Lake:
    """A table for each topic.

    Attributes:
        address: of the tables.
        options: of the union.
        write: commits rows of a topic, one by one.
        age: compacts a topic's table, and removes what described its earlier versions.
        remove: removes the data files that the newest version of a topic's table lacks.
    """

    address: str
    options: dict[str, str]
    write: Callable[[str, int, int], None]
    age: Callable[[str], None]
    remove: Callable[[str], None]


def _delta(root: Path) -> Lake:
    def write(topic: str, begin: int, end: int) -> None:
        key, path = TopicPartition(topic, 0), str(root / topic)
        table = DeltaLakeTable(path, "g")
        table.create(SCHEMA)
        for number in range(begin, end):
            landing = Landing(filesystem(path), SCHEMA)
            landing.write(rows_of(key, [number]))
            _commit(table, landing, key, number)

    def age(topic: str) -> None:
        table = DeltaTable(str(root / topic))
        table.optimize.compact()
        table.create_checkpoint()
        for file in (root / topic / "_delta_log").glob("*.json"):
            if int(file.stem) < table.version():
                file.unlink()

    def remove(topic: str) -> None:
        DeltaTable(str(root / topic)).vacuum(0, dry_run=False, enforce_retention_duration=False)

    return Lake(f"{root}/{{topic}}", {}, write, age, remove)


def _iceberg(root: Path) -> Lake:
    storage = warehouse(root)

    def handle(topic: str) -> IcebergTable:
        return IcebergTable(iceberg_address(f"lake.raw.{topic}"), "g", storage)

    def write(topic: str, begin: int, end: int) -> None:
        table = handle(topic)
        for number in range(begin, end):
            key, landing = TopicPartition(topic, 0), table.landing(SCHEMA)
            landing.write(rows_of(key, [number]))
            _commit(table, landing, key, number)

    def age(topic: str) -> None:
        table = handle(topic)
        table.refresh()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compaction, "ENOUGH", 2)
            assert table.compact(2)

    def remove(topic: str) -> None:
        table = open_catalog("lake", storage).load_table(identifier(iceberg_address(f"lake.raw.{topic}")).path)
        listed = {Path(urlsplit(one.file.file_path).path) for one in table.scan().plan_files()}
        for file in Path(urlsplit(table.location()).path).glob("data/*.parquet"):
            if file not in listed:
                file.unlink()

    return Lake("iceberg://lake.raw.{topic}", storage, write, age, remove)


def _commit(table: DeltaLakeTable | IcebergTable, landing: Landing, key: TopicPartition, number: int) -> None:
    snapshot = table.refresh()
    assert snapshot is not None
    change = Change(files=landing.close(), positions={key: number + 1}, beginnings={key: 0}, schema=SCHEMA)
    table.swap(snapshot, change)


@pytest.fixture(params=[_delta, _iceberg], ids=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Tables of each format, and no record that they lack."""
    monkeypatch.setattr(union_reader, "find_unread", lambda *_: Unread(ranges=[], identities={}, labels={}))
    monkeypatch.setattr(Union, "unread", lambda _: iter(()))
    made: Lake = request.param(tmp_path)
    for topic in TOPICS:
        made.write(topic, 0, ROWS)
    return made


def _open(lake: Lake) -> Union:
    return open_union(lake.address, "localhost:9", options=lake.options)


def _streamed(found: Union) -> list[tuple[str, int]]:
    return _sorted(pa.Table.from_batches(found.stored()))


def _queried(found: Union) -> list[tuple[str, int]]:
    with query(found, 'SELECT topic, "offset" FROM records') as rows:
        return _sorted(rows.read_all())


def _sorted(rows: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(rows["topic"].to_pylist(), rows["offset"].to_pylist(), strict=True))


READERS = pytest.mark.parametrize("read", [_streamed, _queried], ids=["union", "query"])
EVERY_ROW = [(topic, number) for topic in TOPICS for number in range(ROWS)]


@READERS
def test_rows_are_those_of_the_opening_after_commits_a_compaction_and_an_expiry(
    lake: Lake, read: Callable[[Union], list[tuple[str, int]]]
) -> None:
    """All tables are opened before the first row is read, and writers remove what describes their former versions."""
    found = _open(lake)
    for topic in TOPICS:
        lake.write(topic, ROWS, ROWS + 3)
        lake.age(topic)
    assert read(found) == EVERY_ROW


@READERS
def test_a_file_that_another_program_removed_is_named_with_the_way_out(
    lake: Lake, read: Callable[[Union], list[tuple[str, int]]]
) -> None:
    """Agents remove no data file, but VACUUM does, and each engine's removal of files without a snapshot."""
    found = _open(lake)
    lake.age("z")
    lake.remove("z")
    says = r"^\S*[/.]z/?: .*cannot be read: .*part-\S+\.parquet\b.*\. If VACUUM .* with a longer retention$"
    with pytest.raises(TableError, match=says):
        read(found)


@READERS
def test_a_table_with_a_feature_that_delta_rs_does_not_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Union], list[tuple[str, int]]]
) -> None:
    """Agents go on writing to a table whose rows another engine deletes by vectors, so a reader comes across one."""
    monkeypatch.setattr(union_reader, "find_unread", lambda *_: Unread(ranges=[], identities={}, labels={}))
    lake = _delta(tmp_path)
    lake.write("a", 0, ROWS)
    delete_by_vector(str(tmp_path / "a"))
    with pytest.raises(TableError, match=r"/a: the rows cannot be read: .*deletionVectors"):
        read(_open(lake))


@READERS
def test_rows_are_those_of_the_opening_if_the_catalog_lists_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Union], list[tuple[str, int]]]
) -> None:
    """The library asks such a REST catalog for the newest snapshot: rows after the positions would be read twice."""
    monkeypatch.setattr(union_reader, "find_unread", lambda *_: Unread(ranges=[], identities={}, labels={}))
    monkeypatch.setattr(Union, "unread", lambda _: iter(()))
    lake = _iceberg(tmp_path)
    for topic in TOPICS:
        lake.write(topic, 0, ROWS)
    found = _open(lake)
    for topic in TOPICS:
        lake.write(topic, ROWS, ROWS + 3)

    def newest(scan: DataScan) -> Iterable[FileScanTask]:
        assert scan.catalog is not None
        assert scan.table_identifier is not None
        return scan.catalog.load_table(scan.table_identifier).scan()._plan_files_local()

    monkeypatch.setattr(DataScan, "_should_use_server_side_planning", lambda _: True)
    monkeypatch.setattr(DataScan, "_plan_files_server_side", newest)
    assert read(found) == EVERY_ROW
