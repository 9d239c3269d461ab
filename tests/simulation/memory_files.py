"""Data files, entries of logs and files of checkpoints in memory, where Arrow's file system and Parquet would be."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Self

import pyarrow as pa
import pyarrow.fs as pa_fs

from tests.simulation.memory_store import Store, short_name


class Files:
    """A file system rooted at an address, as `table_storage.filesystem` makes it."""

    def __init__(self, store: Store, uri: str) -> None:
        self._store, self._uri = store, uri

    def open_output_stream(self, path: str) -> "Stream":
        """A new file."""
        return Stream(self._store, f"{self._uri}/{path}")

    def open_input_file(self, path: str) -> "Stream":
        """A data file."""
        if self._store.scheduler.point(f"read {short_name(self._uri)}/{path}", "refused") == "refused":
            raise OSError("the store does not answer")
        if f"{self._uri}/{path}" not in self._store.data:
            raise FileNotFoundError(path)
        return Stream(self._store, f"{self._uri}/{path}")

    def open_input_stream(self, path: str) -> "Stream":
        """A text: an entry of a log, or a file of a checkpoint."""
        text = self._text(path)
        if text is None:
            raise FileNotFoundError(path)
        return Stream(self._store, path, text)

    def get_file_info(self, asked: Any) -> Any:
        """The size of a file, which of some files are there, or the names of a log."""
        if isinstance(asked, list):
            self._store.scheduler.point(f"look for files of {short_name(self._uri)}")
            kind = {True: pa_fs.FileType.File, False: pa_fs.FileType.NotFound}
            return [SimpleNamespace(type=kind[f"{self._uri}/{one}" in self._store.data]) for one in asked]
        if isinstance(asked, pa_fs.FileSelector):
            uri = self._table(asked.base_dir)
            self._store.scheduler.point(f"list the log of {short_name(uri)}")
            log = self._store.logs.get(uri)
            versions = log.versions if log else []
            return [SimpleNamespace(base_name=f"{at:020}.json", size=len(one.text)) for at, one in enumerate(versions)]
        return SimpleNamespace(size=self._store.data[f"{self._uri}/{asked}"].num_rows)

    def _table(self, log: str) -> str:
        """The address of the table with this path of a log."""
        return f"{self._uri}/{log}".removesuffix("/_delta_log")

    def _text(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        if not folder.endswith("_delta_log"):
            self._store.scheduler.point(f"read {short_name(self._uri)}/{path}")
            return self._store.texts.get(f"{self._uri}/{path}")
        number, uri = int(name.removesuffix(".json")), self._table(folder)
        fault = self._store.scheduler.point(f"read entry {number} of {short_name(uri)}", "stale", "refused")
        if fault == "refused":
            raise OSError("the store does not answer")
        log = self._store.logs.get(uri)
        known = len(log.versions) if log else 0
        # A stale answer lacks the newest entry.
        return log.versions[number].text if log and 0 <= number < known - (fault == "stale") else None


class Stream:
    """An open file."""

    def __init__(self, store: Store, path: str, text: str = "") -> None:
        self.store, self.path, self._text = store, path, text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left open."""

    def read(self) -> bytes:
        """The whole text."""
        return self._text.encode()

    def tell(self) -> int:
        """The size of the written file, as `Files.get_file_info` has it."""
        return int(self.store.data[self.path].num_rows)

    def close(self) -> None:
        """Nothing is left open."""


class ParquetWriter:
    """As Arrow's: the file is there once it is closed."""

    def __init__(self, stream: Stream, schema: pa.Schema, **_: object) -> None:
        self._stream, self._schema, self._held = stream, schema, list[pa.Table]()

    def write_table(self, table: pa.Table) -> None:
        """Take rows."""
        self._held.append(table)

    def close(self) -> None:
        """Finish the file."""
        store, path = self._stream.store, self._stream.path
        if store.scheduler.point(f"write {path.removeprefix('mem://lake/')}", "refused") == "refused":
            raise OSError("the store does not answer")
        store.data[path] = self._held[0] if len(self._held) == 1 else pa.concat_tables(self._held)


class ParquetFile:
    """As Arrow's."""

    def __init__(self, stream: Stream, **_: object) -> None:
        self._table = stream.store.data[stream.path]
        self.schema_arrow = self._table.schema

    def read(self) -> pa.Table:
        """All rows."""
        return self._table

    def iter_batches(
        self, batch_size: int = 0, columns: Sequence[str] | None = None, *, use_threads: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """The rows."""
        del batch_size, use_threads
        yield from (self._table.select(list(columns)) if columns else self._table).to_batches()


def parquet() -> SimpleNamespace:
    """What stands for the module pyarrow.parquet."""
    return SimpleNamespace(ParquetWriter=ParquetWriter, ParquetFile=ParquetFile)
