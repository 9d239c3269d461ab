"""Questions about tables, an ops log and folders: whether they exist, fit the rows, and can be written."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake.exceptions import DeltaError

from spark_sink.checks.findings import Check
from spark_sink.errors import SchemaError, TableError, plain
from spark_sink.formats.quarantine_addresses import base_of
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.iceberg.catalogs import is_absent, local_warehouse
from spark_sink.lake.iceberg.repeated_requests import asked_once
from spark_sink.lake.ops_log.ops_settings import OpsSettings
from spark_sink.lake.ops_log.ops_table import OpsTable
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.lake.positions_in_delta_log import existing
from spark_sink.lake.schema_fit import fit_schema, refuse_new
from spark_sink.lake.table_addresses import (
    PLACEHOLDER,
    Storage,
    is_iceberg,
    local_path,
    looks_iceberg,
    table_uri,
    with_name,
)
from spark_sink.lake.table_contract import Snapshot
from spark_sink.lake.table_formats import LakeTable, open_table
from spark_sink.lake.table_storage import filesystem

_PROBE: Final = "_azimuth_check"  # readers of Delta tables ignore names that begin with an underscore
_PROBE_BYTES: Final = 65_536
_MOST: Final = 8  # tables of an address with {topic} that are looked at


def check_table(  # noqa: PLR0913 -- what a table is
    address: str,
    group: str,
    storage: Storage,
    columns: pa.Schema,
    *,
    merge_schema: bool = False,
    selected: Callable[[str], bool] = lambda _: True,
    patient: bool = False,
) -> str:
    """Check the tables of an address; creates nothing.

    Args:
        address: of a table; `{topic}` in it stands for the topic.
        group: the consumer group.
        storage: options of the object store.
        columns: the columns of the rows, as far as they are known.
        merge_schema: the first commit adds columns that a table lacks.
        selected: whether a topic goes to this address; beside the tables of `{topic}` there may be others, also of
            other groups.
        patient: ask a catalog that cannot answer for the moment again, as at the start of an agent.

    Raises:
        OptionError: the address is invalid, or the options describe no catalog.
        TableError: a table cannot be read or written, is not a table of this project, or has such topics of another
            group.
        SchemaError: the columns do not fit.
    """
    rows = _Rows(group, storage, normal_schema(columns), merge_schema, address, selected)
    if is_iceberg(address):
        with contextlib.nullcontext() if patient else asked_once():
            return _check_iceberg(address, storage, rows)
    # The bad rows of a table have columns of their own, and their table's name looks like that of one more topic.
    found = [
        uri for uri, topic in existing(address, storage) if topic is None or (base_of(uri) is None and selected(topic))
    ]
    there = [uri for uri in found[:_MOST] if rows.fit_delta(uri)]
    check_writable(address, storage)
    if PLACEHOLDER in address:
        folders = "; new ones are Delta tables in folders of such names, not in an Iceberg catalog"
        return f"{address}: {len(found)} tables{folders if not found and looks_iceberg(address) else ''}"
    if not there and looks_iceberg(address):
        return f"{_state(address, there=False)} as a Delta table in this folder, not in an Iceberg catalog"
    return _state(address, there=bool(there))


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that go to the tables of an address; see `check_table`."""

    group: str
    storage: Storage
    columns: pa.Schema
    merge_schema: bool
    address: str
    selected: Callable[[str], bool]

    def fit_delta(self, uri: str) -> bool:
        """Return whether the table exists; raise an error if the rows do not fit it."""
        table = DeltaLakeTable(uri, self.group, self.storage)
        try:
            snapshot = table.newest()
        except SchemaError as error:
            why = str(error.__cause__ or error).partition(":")[0]
            raise TableError(f"{uri}: is a table of another writer: {why}; give the records their own table") from error
        if snapshot is None:
            return False
        self._refuse(uri, table, snapshot)
        table.refuse_rules()
        return True

    def fit_iceberg(self, address: str) -> bool:
        """Return the same of an Iceberg table."""
        table = open_table(address, self.group, self.storage)
        snapshot = table.refresh()
        if snapshot is not None:
            self._refuse(address, table, snapshot)
        return snapshot is not None

    def _refuse(self, uri: str, table: LakeTable, snapshot: Snapshot) -> None:
        new = fit_schema(uri, snapshot.schema, self.columns)
        if not self.merge_schema:
            refuse_new(uri, snapshot.schema, new, ", or give the records their own table")
        table.refuse_other_groups(lambda key: key not in snapshot.positions and self._goes_to(uri, key.topic))

    def _goes_to(self, uri: str, topic: str) -> bool:
        """Return whether a topic goes to this table, and not to another one of `{topic}`."""
        if PLACEHOLDER not in self.address:
            return self.selected(topic)
        address = self.address if is_iceberg(self.address) else table_uri(self.address)
        return uri == with_name(address, PLACEHOLDER, topic) and self.selected(topic)


def _check_iceberg(address: str, storage: Storage, rows: _Rows) -> str:
    if (folder := local_warehouse(storage)) is not None:
        check_writable(str(folder), {})
    if PLACEHOLDER in address:
        found = [one for one, _ in existing(address, storage) if base_of(one) is None]
        for one in found[:_MOST]:
            rows.fit_iceberg(one)
        return f"{address}: {len(found)} tables"
    return _state(address, there=not is_absent(storage) and rows.fit_iceberg(address))


def _state(address: str, *, there: bool) -> str:
    return f"{address}: {'exists' if there else 'new; the first commit creates it'}"


def check_writable(address: str, storage: Storage) -> str:
    """Check that files can be written below an address; leaves nothing behind.

    Raises:
        TableError: files cannot be written there.
    """
    local = local_path(address)
    try:
        if local is not None:
            place = _nearest_folder(local.absolute())
            # A full disk takes an empty file, and may report the error of its content only when it is closed.
            with tempfile.TemporaryFile(dir=place) as probe:
                probe.write(bytes(_PROBE_BYTES))
                probe.flush()
                os.fsync(probe.fileno())
            return f"{address}: writable"
        store = filesystem(table_uri(address.partition(PLACEHOLDER)[0]), storage)
        with store.open_output_stream(_PROBE) as stream:
            stream.write(b"")
        with contextlib.suppress(OSError):  # a user without the right to delete leaves one empty object
            store.delete_file(_PROBE)
    except (OSError, DeltaError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else plain(error)
        raise TableError(f"{address}: files cannot be written there: {why}; {_way(error)}, or name another") from error
    return f"{address}: writable"


def _way(error: Exception) -> str:
    full = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    return "free some space" if full else "allow this user to"


def _nearest_folder(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(one for one in (folder, *folder.parents) if one.exists())


def ops_checks(ops: OpsSettings | None) -> list[Check]:
    """Return the question about the ops log, if there is one."""
    if ops is None:
        return []
    return [Check(subject="ops log", place=ops.table, ask=lambda: _ops_log(ops))]


def _ops_log(ops: OpsSettings) -> str:
    there = OpsTable(ops.table, ops.storage).check()
    check_writable(ops.table, ops.storage)
    return f"{ops.table}: {'exists' if there else 'new; the first write creates it'}"
