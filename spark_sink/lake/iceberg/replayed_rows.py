"""The quarantined records of an Iceberg table, and which of them the table has, for their replay."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.errors import TableError
from spark_sink.formats.bad_values_quarantined import SCHEMA
from spark_sink.lake.iceberg.catalogs import iceberg_address
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.stored_rows import StoredTable, quarantined_rows
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_contract import Snapshot

_KEYS = ("topic", "partition", "offset")


class IcebergReplay:
    """An Iceberg table into which quarantined records are replayed.

    Args:
        address: of the table.
        group: the consumer group that wrote it.
        storage: options of the catalog.
    """

    def __init__(self, address: str, group: str, storage: Storage | None = None) -> None:
        self._address = iceberg_address(address)
        self._storage = dict(storage or {})
        self.table = IcebergTable(self._address, group, storage)

    def snapshot(self) -> Snapshot:
        """Read the newest version.

        Raises:
            TableError: there is no table, or it cannot be read.
        """
        found = self.table.refresh()
        if found is None:
            raise TableError(f"{self._address}: there is no Iceberg table")
        return found

    def records(self, columns: Sequence[str] = SCHEMA.names) -> Iterator[pa.RecordBatch]:
        """Read all records that were quarantined up to the last `snapshot`.

        Raises:
            TableError: the quarantine cannot be read.
        """
        wanted = pa.schema([SCHEMA.field(name) for name in columns])
        for batch in quarantined_rows(self._address, self._stored(), self._storage, columns):
            yield batch.select(wanted.names).cast(wanted)

    def near(self, snapshot: Snapshot, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Read the identifying columns of the table's rows with offsets between those of these rows, and maybe others.

        Args:
            snapshot: the last one.
            rows: at least one.
        """
        del snapshot  # of the last look, which the handle has
        bounds = pc.min_max(rows.column("offset"))
        low, high = (bounds[name].as_py() for name in ("min", "max"))
        yield from self._stored().rows(_KEYS, f"offset >= {low} and offset <= {high}")

    def landing(self, schema: pa.Schema) -> Landing:
        """Return a writer of rows with these columns.

        Raises:
            SchemaError: the columns do not fit the table.
        """
        return self.table.landing(schema)

    def _stored(self) -> StoredTable:
        found = self.table.stored
        if found is None:
            raise TableError(f"{self._address}: there is no Iceberg table")
        return found
