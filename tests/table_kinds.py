"""One table of each kind for the tests of `table_contract`: Delta, Iceberg, and the table in memory."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table as Peer

from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.iceberg import compaction
from spark_sink.lake.iceberg.catalogs import iceberg_address, identifier, open_catalog
from spark_sink.lake.iceberg.compaction import compact
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.landing import IcebergLanding
from spark_sink.lake.iceberg.partition_terms import parse_terms
from spark_sink.lake.parquet_landing import Landing, Layout
from spark_sink.lake.table_contract import Change, DataFile, Snapshot, Table
from spark_sink.lake.table_settings import TableSettings, Term
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.testing import MemoryStore, MemoryTable, Record

SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])
FOREIGN = TopicPartition("foreign", 0)
ADDRESS = iceberg_address("lake.raw.events")
KINDS = ("delta", "iceberg", "iceberg by partition", "memory")
TERMS = parse_terms("topic, bucket(2, partition)")


def newest(table: Table) -> Snapshot:
    """Return the newest snapshot of a table that exists."""
    snapshot = table.refresh()
    assert snapshot is not None
    return snapshot


def created(table: Table) -> Snapshot:
    """Create a table with the columns of SCHEMA; return its first snapshot."""
    table.create(SCHEMA)
    return newest(table)


def change_of(positions: dict[TopicPartition, int], *files: DataFile) -> Change:
    """Return a change with the columns of SCHEMA."""
    return Change(files=files, positions=positions, beginnings={}, schema=SCHEMA)


@dataclass
class Kind:
    """One table of a format.

    Attributes:
        make: a new handle of a group, `g` by default.
        write: writes a file that no commit names; the table exists.
        write_bad: the same for bad rows, which are in the quarantine's place.
        rows: the committed rows, read by the format's own reader.
        foreign: things that other writers do to the table, by name.
    """

    make: Callable[..., Table]
    write: Callable[[TopicPartition, Iterable[int]], DataFile]
    write_bad: Callable[[TopicPartition, Iterable[int]], DataFile]
    rows: Callable[[], Counter[Record]]
    foreign: Mapping[str, Callable[[], object]] = field(default_factory=dict)


def rows_of(key: TopicPartition, offsets: Iterable[int]) -> pa.RecordBatch:
    """Return rows with the columns of SCHEMA."""
    numbers = list(offsets)
    columns = [[key.topic] * len(numbers), [key.partition] * len(numbers), numbers, [b"v"] * len(numbers)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, one.type) for column, one in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


@dataclass
class Place:
    """Tables of one format in a folder.

    Attributes:
        root: the folder.
        format: `delta` or `iceberg`.
    """

    root: Path
    format: str

    @property
    def storage(self) -> dict[str, str]:
        """Options of the tables' storage."""
        return {"catalog.warehouse": str(self.root / "warehouse")} if self.format == "iceberg" else {}

    def address(self, table: str) -> str:
        """Address of a table."""
        return iceberg_address(f"lake.raw.{table}") if self.format == "iceberg" else str(self.root / table)

    def offsets(self, table: str) -> list[int]:
        """Read the offsets in a table by the format's own reader, sorted."""
        if self.format == "iceberg":
            found = open_catalog("lake", self.storage).load_table(("raw", table)).scan().to_arrow()
        else:
            found = DeltaTable(self.address(table)).to_pyarrow_table()
        return sorted(found.column("offset").to_pylist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """An S3 for tables.

    Attributes:
        address: where the tables are, `s3://`.
        delta: options of Delta tables.
        iceberg: options of Iceberg's catalog, but that of the warehouse.
    """

    address: str
    delta: Mapping[str, str]
    iceberg: Mapping[str, str]


def kind_of(name: str, root: Path, bucket: Bucket | None = None) -> Kind:
    """Return a table of this format.

    Args:
        name: of the format.
        root: an empty folder.
        bucket: where the files are; None for the folder.
    """
    if name == "memory":
        return _memory()
    if name == "delta":
        return _delta(f"{bucket.address}/table" if bucket else str(root / "table"), bucket.delta if bucket else {})
    storage = warehouse(root)
    if bucket:
        database = f"sqlite:///{root}/catalog.db"
        storage = {
            **bucket.iceberg,
            "catalog.type": "sql",
            "catalog.uri": database,
            "catalog.warehouse": bucket.address,
        }
    return _iceberg(storage, TERMS if name == "iceberg by partition" else ())


def warehouse(root: Path) -> dict[str, str]:
    """Return the options of a local catalog."""
    return {"catalog.warehouse": str(root / "warehouse")}


def catalog(root: Path) -> Catalog:
    """Return the local catalog, as any other writer has it."""
    return open_catalog("lake", warehouse(root))


def peer(root: Path) -> Peer:
    """Return the Iceberg table as another writer has it: by pyiceberg alone."""
    return _peer(warehouse(root))


def _peer(storage: Mapping[str, str]) -> Peer:
    return open_catalog("lake", storage).load_table(identifier(ADDRESS).path)


def iceberg_file(root: Path, key: TopicPartition, offsets: Iterable[int], schema: pa.Schema = SCHEMA) -> DataFile:
    """Write a file of the Iceberg table that no commit names."""
    return _iceberg_file(warehouse(root), key, offsets, schema)


def _iceberg_file(
    storage: Mapping[str, str], key: TopicPartition, offsets: Iterable[int], schema: pa.Schema = SCHEMA
) -> DataFile:
    landing = IcebergLanding(_peer(storage), schema, Layout())
    landing.write(rows_of(key, offsets))
    (file,) = landing.close()
    return file


def counted(rows: pa.Table) -> Counter[Record]:
    """Count the rows by topic, partition and offset, without those of foreign writers."""
    found = zip(*(rows.column(name).to_pylist() for name in ("topic", "partition", "offset")), strict=True)
    return Counter((TopicPartition(topic, number), offset) for topic, number, offset in found if topic != FOREIGN.topic)


def _delta(path: str, storage: Mapping[str, str]) -> Kind:
    options = dict(storage)

    def write(place: str, key: TopicPartition, offsets: Iterable[int]) -> DataFile:
        landing = Landing(filesystem(place, storage, make=True), SCHEMA)
        landing.write(rows_of(key, offsets))
        (file,) = landing.close()
        return file

    return Kind(
        make=lambda group="g": DeltaLakeTable(path, group, storage),
        write=partial(write, path),
        write_bad=partial(write, f"{path}_quarantine"),
        rows=lambda: counted(DeltaTable(path, storage_options=options).to_pyarrow_table()),
        foreign={
            "append": lambda: write_deltalake(
                path, pa.table(rows_of(FOREIGN, [0]).to_pydict(), SCHEMA), mode="append", storage_options=options
            ),
            "checkpoint": lambda: DeltaTable(path, storage_options=options).create_checkpoint(),
        },
    )


def _iceberg(storage: Mapping[str, str], terms: Sequence[Term] = ()) -> Kind:
    def rewrite() -> None:
        table = _peer(storage)
        if (rows := table.scan().to_arrow()).num_rows:
            table.overwrite(rows)

    def join() -> None:
        handle = IcebergTable(ADDRESS, "g", storage)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compaction, "ENOUGH", 2)
            compact("t", handle._load, Layout())

    def expire() -> None:
        table = _peer(storage)
        if len(table.metadata.snapshots) > 1:
            ids = [one.snapshot_id for one in table.metadata.snapshots[:-1]]
            table.maintenance.expire_snapshots().by_ids(ids).commit()

    def set_property() -> None:
        with _peer(storage).transaction() as change:
            change.set_properties({"owner": "someone else"})

    # pyiceberg writes into partitions by bucket only with its compiled part, which is not among the requirements.
    writes: dict[str, Callable[[], object]] = {
        "append": lambda: _peer(storage).append(pa.Table.from_batches([rows_of(FOREIGN, [0])])),
        "compaction": rewrite,
    }
    return Kind(
        make=lambda group="g": IcebergTable(ADDRESS, group, storage, TableSettings(terms=terms)),
        write=partial(_iceberg_file, storage),
        write_bad=partial(_iceberg_file, storage),
        rows=lambda: counted(_peer(storage).scan().to_arrow()),
        foreign={
            **({} if terms else writes),
            "compaction by an agent": join,
            "expiry": expire,
            "property": set_property,
        },
    )


def _memory() -> Kind:
    store = MemoryStore()

    def write(key: TopicPartition, offsets: Iterable[int]) -> DataFile:
        return store.write((key, one) for one in offsets)

    return Kind(
        make=lambda: MemoryTable(store),
        write=write,
        write_bad=write,
        rows=lambda: Counter(store.rows()),
    )
