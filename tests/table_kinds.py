"""One table of each kind for the tests of `table_contract`: Delta, Iceberg, and the table in memory."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table as Peer

from spark_sink.lake.delta_table import DeltaLakeTable, TableSettings
from spark_sink.lake.iceberg import small_files
from spark_sink.lake.iceberg.catalogs import iceberg_address, identifier, open_catalog
from spark_sink.lake.iceberg.compaction import compact
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.landing import IcebergLanding
from spark_sink.lake.iceberg.partition_terms import Term, parse_terms
from spark_sink.lake.parquet_landing import Landing, Layout
from spark_sink.lake.table_contract import DataFile, Table
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.testing import MemoryStore, MemoryTable, Record

SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])
FOREIGN = TopicPartition("foreign", 0)
ADDRESS = iceberg_address("lake.raw.events")
KINDS = ("delta", "iceberg", "iceberg by partition", "memory")
TERMS = parse_terms("topic, bucket(2, partition)")


@dataclass
class Kind:
    """One table of a format.

    Attributes:
        make: a new handle.
        write: writes a file that no commit names; the table exists.
        rows: the committed rows, read by the format's own reader.
        foreign: things that other writers do to the table, by name.
    """

    make: Callable[[], Table]
    write: Callable[[TopicPartition, Iterable[int]], DataFile]
    rows: Callable[[], Counter[Record]]
    foreign: Mapping[str, Callable[[], object]] = field(default_factory=dict)


def rows_of(key: TopicPartition, offsets: Iterable[int]) -> pa.RecordBatch:
    """Return rows with the columns of SCHEMA."""
    numbers = list(offsets)
    columns = [[key.topic] * len(numbers), [key.partition] * len(numbers), numbers, [b"v"] * len(numbers)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, one.type) for column, one in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def kind_of(name: str, root: Path) -> Kind:
    """Return a table of this format."""
    if name == "iceberg by partition":
        return _iceberg(root, TERMS)
    return {"delta": _delta, "iceberg": _iceberg, "memory": _memory}[name](root)


def warehouse(root: Path) -> dict[str, str]:
    """Return the options of a local catalog."""
    return {"catalog.warehouse": str(root / "warehouse")}


def catalog(root: Path) -> Catalog:
    """Return the local catalog, as any other writer has it."""
    return open_catalog("lake", warehouse(root))


def peer(root: Path) -> Peer:
    """Return the Iceberg table as another writer has it: by pyiceberg alone."""
    return catalog(root).load_table(identifier(ADDRESS).path)


def iceberg_file(root: Path, key: TopicPartition, offsets: Iterable[int], schema: pa.Schema = SCHEMA) -> DataFile:
    """Write a file of the Iceberg table that no commit names."""
    landing = IcebergLanding(peer(root), schema, Layout())
    landing.write(rows_of(key, offsets))
    (file,) = landing.close()
    return file


def counted(rows: pa.Table) -> Counter[Record]:
    """Count the rows by topic, partition and offset, without those of foreign writers."""
    found = zip(*(rows.column(name).to_pylist() for name in ("topic", "partition", "offset")), strict=True)
    return Counter((TopicPartition(topic, number), offset) for topic, number, offset in found if topic != FOREIGN.topic)


def _delta(root: Path) -> Kind:
    path = root / "table"

    def write(key: TopicPartition, offsets: Iterable[int]) -> DataFile:
        landing = Landing(filesystem(str(path), make=True), SCHEMA)
        landing.write(rows_of(key, offsets))
        (file,) = landing.close()
        return file

    return Kind(
        make=lambda: DeltaLakeTable(str(path), "g"),
        write=write,
        rows=lambda: counted(DeltaTable(str(path)).to_pyarrow_table()),
        foreign={
            "append": lambda: write_deltalake(
                str(path), pa.table(rows_of(FOREIGN, [0]).to_pydict(), SCHEMA), mode="append"
            ),
            "checkpoint": lambda: DeltaTable(str(path)).create_checkpoint(),
        },
    )


def _iceberg(root: Path, terms: Sequence[Term] = ()) -> Kind:
    def rewrite() -> None:
        table = peer(root)
        if (rows := table.scan().to_arrow()).num_rows:
            table.overwrite(rows)

    def join() -> None:
        handle = IcebergTable(ADDRESS, "g", warehouse(root))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(small_files, "ENOUGH", 2)
            compact("t", handle._load, Layout())

    def expire() -> None:
        table = peer(root)
        if len(table.metadata.snapshots) > 1:
            ids = [one.snapshot_id for one in table.metadata.snapshots[:-1]]
            table.maintenance.expire_snapshots().by_ids(ids).commit()

    def set_property() -> None:
        with peer(root).transaction() as change:
            change.set_properties({"owner": "someone else"})

    # pyiceberg writes into partitions by bucket only with its compiled part, which is not among the requirements.
    writes: dict[str, Callable[[], object]] = {
        "append": lambda: peer(root).append(pa.Table.from_batches([rows_of(FOREIGN, [0])])),
        "compaction": rewrite,
    }
    return Kind(
        make=lambda: IcebergTable(ADDRESS, "g", warehouse(root), TableSettings(terms=terms)),
        write=lambda key, offsets: iceberg_file(root, key, offsets),
        rows=lambda: counted(peer(root).scan().to_arrow()),
        foreign={
            **({} if terms else writes),
            "compaction by an agent": join,
            "expiry": expire,
            "property": set_property,
        },
    )


def _memory(_: Path) -> Kind:
    store = MemoryStore()
    return Kind(
        make=lambda: MemoryTable(store),
        write=lambda key, offsets: store.write((key, one) for one in offsets),
        rows=lambda: Counter(store.rows()),
    )
