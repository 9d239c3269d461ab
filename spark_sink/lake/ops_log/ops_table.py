"""The Delta table of an ops log: appends rows, compacts small files, and removes old days.

Commits are appends without positions. A lost answer does not double rows: each write has an id in its commit, and
before a write is tried again, the commits since the last attempt are searched for it.
"""

import contextlib
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from spark_sink.errors import SparkSinkError, TableError, plain
from spark_sink.formats.variant_type import arrow_columns
from spark_sink.lake.conditional_put_check import refuse_overwriting_store
from spark_sink.lake.delta_log_files import read_commit
from spark_sink.lake.delta_log_reader import our_note
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.delta_transaction import commit
from spark_sink.lake.fenced_replacement import replace_files
from spark_sink.lake.file_rewrite import Rewrite, plan_rewrites, table_files, write_rewrite
from spark_sink.lake.file_statistics import FileStatistics
from spark_sink.lake.parquet_landing import Layout, normal_columns, storage_errors
from spark_sink.lake.partition_folders import make_folder, new_file
from spark_sink.lake.schema_fit import fit_schema, refuse_unenforced
from spark_sink.lake.table_addresses import Storage, table_uri
from spark_sink.lake.table_settings import TableSettings
from spark_sink.lake.table_storage import address_of, filesystem, is_delta_table

_DATE: Final = "date"
_STAMP: Final = pa.timestamp("us", tz="UTC")
SCHEMA: Final = pa.schema(
    [
        pa.field("began_at", _STAMP),
        pa.field("ended_at", _STAMP),
        pa.field(_DATE, pa.date32()),
        pa.field("kind", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("agent", pa.string()),
        pa.field("source", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("table_uri", pa.string()),
        pa.field("batches", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("quarantined", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("errors", pa.int64()),
        pa.field("last_error", pa.string()),
    ]
)
_PROPERTIES: Final = {
    "delta.logRetentionDuration": "interval 7 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
_MAINTAIN_EVERY: Final = 100  # versions
_COMPACT_BYTES: Final = 32 << 20


@dataclass(slots=True, kw_only=True)
class OpsWrite:
    """Rows that belong into the table once.

    Attributes:
        rows: in the columns of the table.
        day: the partition.
        id: names the write in its commit.
        after: version of the table at the last attempt; None before the first one.
    """

    rows: pa.Table
    day: date
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    after: int | None = None


class OpsTable:
    """The table; used by one thread, beside the threads of any other process.

    Args:
        address: address of the table.
        storage: options of the object store.
        keep_days: rows of earlier days are removed.
    """

    def __init__(self, address: str, storage: Storage | None = None, keep_days: int = 90) -> None:
        self.uri = table_uri(address)
        self._storage = dict(storage or {})
        self._keep_days = keep_days

    def append(self, write: OpsWrite) -> None:
        """Append rows, unless an earlier attempt has done so.

        Raises:
            SparkSinkError: the table refuses, or does not answer; the same write may be tried again.
        """
        with self._one_sentence():
            if write.after is None or not self._has(write):
                self._append(write)

    def check(self) -> bool:
        """Return whether the table exists; creates nothing.

        Raises:
            TableError: it cannot be read, or is another table.
        """
        with self._one_sentence():
            try:
                found = self._load()
            except TableNotFoundError:
                self._refuse_content()
                return False
            self._refuse_foreign(found)
            return True

    def _append(self, write: OpsWrite) -> None:
        refuse_overwriting_store(self.uri, self._storage)
        handle = self._open()
        self._refuse_foreign(handle)
        write.after = handle.version()
        path = new_file({_DATE: write.day.isoformat()})
        files = filesystem(self.uri, self._storage, make=True)
        try:
            added, day = _land(files, path, write)
            commit(handle, [added], note={"kind": "ops", "write": write.id})
        except (SparkSinkError, DeltaError, OSError):
            if self._has(write):
                return
            _delete(files, [path])
            raise
        self._maintain(handle, write, day)

    @contextlib.contextmanager
    def _one_sentence(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise TableError(f"{self.uri}: the table does not answer, or refuses: {plain(error)}") from error

    def _load(self) -> DeltaTable:
        return DeltaTable(self.uri, storage_options=self._storage or None)

    def _open(self) -> DeltaTable:
        # Each time from the log: an earlier handle would commit into a folder whose table was deleted or replaced.
        try:
            return self._load()
        except TableNotFoundError:
            self._refuse_content()
            layout = TableSettings(layout=Layout(partition_columns=(_DATE,)), properties=_PROPERTIES)
            DeltaLakeTable(self.uri, "", self._storage, layout).create(SCHEMA)
            return self._load()

    def _refuse_content(self) -> None:
        """Refuse a folder of other files."""
        files = filesystem(self.uri, self._storage)
        with storage_errors(self.uri):
            found = [one.base_name for one in files.get_file_info(pa_fs.FileSelector("", allow_not_found=True))]
        strange = [name for name in found if not name.startswith(("_", "."))]
        # A table that another process creates now has its log before its first file.
        if strange and not is_delta_table(self.uri, self._storage):
            raise TableError(f"{self.uri}: is no Delta table, and has {min(strange)!r}: need an empty folder")

    def _refuse_foreign(self, handle: DeltaTable) -> None:
        refuse_unenforced(self.uri, handle)
        missing = fit_schema(self.uri, normal_columns(arrow_columns(handle.schema())), SCHEMA)
        if missing or handle.metadata().partition_columns != [_DATE]:
            what = f"no column {missing[0].name!r}" if missing else f"other partition columns than {_DATE!r}"
            raise TableError(f"{self.uri}: is another table, with {what}: an ops log needs an address of its own")

    def _has(self, write: OpsWrite) -> bool:
        """Return whether a commit after the last attempt's version is this write."""
        files = filesystem(self.uri, self._storage)
        version = (write.after or 0) + 1
        while (text := read_commit(files, version)) is not None:
            if our_note(text).get("write") == write.id:
                return True
            version += 1
        return False

    def _maintain(self, handle: DeltaTable, write: OpsWrite, day: date) -> None:
        """Compact, and remove old days, if this commit has reached a multiple of a hundred versions.

        Any process may have committed that version, also one that ends after it. Two that come here at the same time do
        no harm: the second finds that files were removed, and drops its work.
        """
        before = handle.version() if write.after is None else write.after
        handle.update_incremental()
        if handle.version() // _MAINTAIN_EVERY == before // _MAINTAIN_EVERY:
            return
        files = filesystem(self.uri, self._storage)
        oldest = day - timedelta(days=self._keep_days)
        if any(str(day) < oldest.isoformat() for one in table_files(handle) for _, day in one.values):
            handle.delete(f"{_DATE} < '{oldest.isoformat()}'")
        _compact(handle, files)
        handle.vacuum(dry_run=False)  # only files that the log names as removed, more than a day ago


def _land(files: pa_fs.FileSystem, path: str, write: OpsWrite) -> tuple[AddAction, date]:
    """Write the file; return it, and the day from which old days are counted.

    That is no later than the day of the storage's clock: a process whose clock is a year ahead would remove all rows.
    """
    rows = write.rows.drop_columns([_DATE])
    statistics = FileStatistics()
    statistics.add(rows)
    with storage_errors(address_of(files, path)):
        make_folder(files, path)
        with files.open_output_stream(path) as stream:
            pq.write_table(rows, stream, compression="zstd")
        info = files.get_file_info(path)
    values: dict[str, str | None] = {_DATE: write.day.isoformat()}
    action = AddAction(path, info.size, values, int(time.time() * 1000), True, statistics.json(rows.column_names))  # noqa: FBT003 -- data changes
    return action, write.day if info.mtime is None else min(write.day, info.mtime.date())


def _compact(handle: DeltaTable, files: pa_fs.FileSystem) -> None:
    rewrites: list[Rewrite] = []
    replaced = False
    try:
        schema = arrow_columns(handle.schema())
        rewrites += (write_rewrite(files, group, schema) for group in plan_rewrites(handle, _COMPACT_BYTES))
        replaced = not rewrites or replace_files(handle, rewrites, {"kind": "compaction", "rows": 0})
    finally:
        if not replaced:
            _delete(files, [added.path for one in rewrites for added in one.adds])


def _delete(files: pa_fs.FileSystem, paths: list[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):  # what is left needs only room
            files.delete_file(path)
