"""Writes the rows of one task to the files of their tables: by topic, with bad rows separate from good ones."""

from collections.abc import Collection, Iterator

import pyarrow as pa

from spark_sink.fetch.raw_columns import arrow_schema, schema_without
from spark_sink.formats import Decoder, decoded_schema
from spark_sink.formats.bad_values_quarantined import SCHEMA as QUARANTINE_SCHEMA
from spark_sink.formats.bad_values_quarantined import good_schema, split
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.formats.variant_type import with_variants
from spark_sink.lake.parquet_landing import Landing, normal_schema
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_formats import open_landing
from spark_sink.lake.table_settings import TableSettings
from spark_sink.sink.rows_by_topic import RowsByTopic
from spark_sink.sink.sink_options import SinkOptions


def landed_schema(decoder: Decoder, *, headers: bool, left_out: Collection[str] = ()) -> pa.Schema:
    """Return the columns of decoded rows that are written to files, without those that are left out."""
    return normal_schema(schema_without(decoded_schema(arrow_schema(headers=headers), decoder.columns), left_out))


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
        good, bad = split(rows, self._run)
        for table, own in self._by_table(good):
            self._land(table, own, self._good, self._options.table)
        for table, own in self._by_table(bad):
            self._land(quarantine_of(table), own, QUARANTINE_SCHEMA, self._options.quarantine)

    def close(self) -> dict[str, list[DataFile]]:
        """Finish the files, and return them by the address of their table."""
        return {table: landing.close() for table, landing in self._landings.items()}

    def _by_table(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        if not rows.num_rows:  # most batches have no bad rows
            return
        by_topic = RowsByTopic(rows)
        for table, topics in self._options.routes.by_table(by_topic.topics).items():
            yield table, by_topic.of(topics)

    def _land(self, table: str, rows: pa.Table, schema: pa.Schema, settings: TableSettings) -> None:
        landing = self._landings.get(table)
        if landing is None:
            landing = self._landings[table] = open_landing(table, self._options.storage, schema, settings)
        for batch in rows.to_batches():
            landing.write(batch)
