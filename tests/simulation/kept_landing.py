"""What the real landing makes of the same rows again, kept.

Landing takes most of the time of a schedule, and without storage it is a function of the rows. So its files are kept by
the rows that they came from, and only their names and the steps of their writing are new each time.
"""

from dataclasses import replace
from functools import partial
from typing import ClassVar

import pyarrow as pa

from spark_sink.lake.parquet_landing import storage_errors
from spark_sink.lake.table_contract import DataFile
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.simulation.memory_files import ParquetWriter, Stream
from tests.simulation.memory_store import Store

Kept = dict[str, list[tuple[DataFile, pa.Table]]]


class KeptSorting:
    """Stands for `Sorting`; a subclass of it names the store."""

    store: Store
    _KEPT: ClassVar[dict[tuple[int, ...], Kept]] = {}

    def __init__(self, options: SinkOptions, schema: pa.Schema, run: str) -> None:
        self._real = partial(Sorting, options, schema, run)
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows."""
        self._batches.append(batch)

    def close(self) -> dict[str, list[DataFile]]:
        """Write the files."""
        key = tuple(id(batch) for batch in self._batches)  # batches of one content are one object that is never freed
        if key not in self._KEPT:
            real = self._real()
            for batch in self._batches:
                real.write(batch)
            made = real.close()
            self._KEPT[key] = {
                uri: [(file, self.store.data[f"{uri}/{file.path}"]) for file in files] for uri, files in made.items()
            }
            return made
        named = [
            (uri, f"part-{self.store.new_name().hex}.parquet", *one)
            for uri, files in self._KEPT[key].items()
            for one in files
        ]
        again: dict[str, list[DataFile]] = {}
        for uri, path, file, rows in named:
            again.setdefault(uri, []).append(self._again(uri, path, file, rows))
        return again

    def _again(self, uri: str, path: str, file: DataFile, rows: pa.Table) -> DataFile:
        writer = ParquetWriter(Stream(self.store, f"{uri}/{path}"), rows.schema)
        writer.write_table(rows)
        with storage_errors(path):
            writer.close()
        return replace(file, path=path)
