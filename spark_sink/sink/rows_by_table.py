"""Writes the rows of one task to the files of their tables: by topic, with bad rows separate from good ones."""

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.errors import TableError
from spark_sink.formats.quarantined_rows import SCHEMA as QUARANTINE_SCHEMA
from spark_sink.formats.quarantined_rows import good_schema, quarantine_of, split
from spark_sink.formats.variant_type import with_variants
from spark_sink.lake.parquet_landing import Landing, Layout, storage_errors
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_storage import filesystem
from spark_sink.sink.sink_options import SinkOptions


class Sorting:
    """Writes the rows of one task.

    Args:
        options: options of the sink.
        schema: schema of the rows, including the column `_quarantine`.
        run: id of the query's run, stored with bad rows.
    """

    def __init__(self, options: SinkOptions, schema: pa.Schema, run: str) -> None:
        self._options = options
        self._schema = schema
        self._good = good_schema(schema)
        self._run = run
        self._landings: dict[str, Landing] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows.

        Raises:
            SchemaError: the columns differ from those of the query.
            TableError: a row has no identifying values, or the storage refused.
        """
        if not batch.num_rows:
            return
        rows = with_variants(pa.Table.from_batches([batch]), self._schema).cast(self._schema)
        topics = pc.unique(rows.column("topic")).to_pylist()
        if None in topics:
            raise TableError("a row has no topic: it would look like a record written twice")
        tables = self._options.routes.by_table(topics)
        for table, names in tables.items():
            whole = len(names) == len(topics)
            own = rows if whole else rows.filter(pc.is_in(rows.column("topic"), pa.array(sorted(names), pa.string())))
            good, bad = split(own, self._run)
            self._land(table, good, self._good, self._options.table.layout)
            self._land(quarantine_of(table), bad, QUARANTINE_SCHEMA, Layout())

    def close(self) -> dict[str, list[DataFile]]:
        """Finish the files, and return them by the address of their table."""
        return {table: landing.close() for table, landing in self._landings.items()}

    def _land(self, table: str, rows: pa.Table, schema: pa.Schema, layout: Layout) -> None:
        if not rows.num_rows:
            return
        landing = self._landings.get(table)
        if landing is None:
            with storage_errors(table):
                files = filesystem(table, self._options.storage, make=True)
            landing = self._landings[table] = Landing(files, schema, layout)
        for batch in rows.to_batches():
            landing.write(batch)
