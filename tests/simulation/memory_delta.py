"""Delta tables in memory, as delta-rs keeps them: a log by put-if-absent, and its rules for commits that meet.

The log entries are texts as delta-rs writes them, without the lines of removed files, so the code that parses them is
the real one. `test_memory_delta` runs the same histories here and in delta-rs.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from tests.simulation.memory_store import Log, Store, Version, short_name

_RETRIES = 15
_SCHEMAS: dict[str, Schema] = {}  # tables of the same columns have one object, so that what follows from it can be kept
_LATER = re.compile(r"\"partition\" = (\d+) AND \"offset\" >= (\d+)")


class MemoryDelta:
    """Stands for `deltalake.DeltaTable`; a subclass of it names the store."""

    store: Store

    def __init__(self, uri: str, version: int | None = None, storage_options: object = None) -> None:
        del storage_options
        self._uri = uri
        fault = self.store.scheduler.point(f"open {short_name(uri)}", "stale", "refused")
        if fault == "refused":
            raise DeltaError("the store does not answer")
        log = self.store.logs.get(uri)
        if log is None:
            raise TableNotFoundError("no log")
        newest = len(log.versions) - 1
        self._log = log
        self._version = version if version is not None else max(0, newest - (fault == "stale"))

    @classmethod
    def is_deltatable(cls, uri: str, storage_options: object = None) -> bool:
        """Whether there is a log."""
        del storage_options
        cls.store.scheduler.point(f"look for {short_name(uri)}")
        return uri in cls.store.logs

    @classmethod
    def create(cls, uri: str, schema: Schema, **_: object) -> None:
        """Create a table by put-if-absent."""
        cls.create_with(uri, schema, [], "error", [], commit_properties=CommitProperties())

    @classmethod
    def create_with(
        cls,
        uri: str,
        schema: Schema,
        actions: Sequence[AddAction],
        mode: str,
        _partitioned: Sequence[str],
        *,
        commit_properties: CommitProperties,
        **_: object,
    ) -> None:
        """Stand for `create_table_with_add_actions`."""
        assert mode == "error"
        fault = cls.store.scheduler.point(f"create {short_name(uri)}", "refused", "lost", "crash after")
        if fault == "refused":
            raise DeltaError("the store does not answer")
        if uri in cls.store.logs:
            raise DeltaError("a table already exists at that location")
        number = len(cls.store.logs)
        cls.store.logs[uri] = Log(_SCHEMAS.setdefault(schema.to_json(), schema), number=number)
        made = _commit("CREATE TABLE", actions, commit_properties, {"metaData": {"id": str(number)}})
        cls.store.append(uri, replace(made, changes_metadata=True))
        cls.store.answer(fault, f"create {short_name(uri)}")

    def version(self) -> int:
        """Where the handle stands."""
        return self._version

    def update_incremental(self) -> None:
        """Go to the newest version."""
        fault = self.store.scheduler.point(f"update {short_name(self._uri)}", "stale", "refused")
        if fault == "refused":
            raise DeltaError("the store does not answer")
        self._version = max(self._version, len(self._log.versions) - 1 - (fault == "stale"))

    def schema(self) -> Schema:
        """The columns."""
        return self._log.schema

    def metadata(self) -> SimpleNamespace:
        """The table's id and partition columns."""
        return SimpleNamespace(id=str(self._log.number), partition_columns=[], configuration={})

    def protocol(self) -> SimpleNamespace:
        """No feature."""
        return SimpleNamespace(reader_features=None, writer_features=None, min_writer_version=2, min_reader_version=1)

    def get_add_actions(self, *, flatten: bool) -> pa.Table:
        """The active files."""
        del flatten  # files have no statistics
        files = self._log.versions[self._version].files
        return pa.table({"path": list(files), "size_bytes": list(files.values())})

    def create_write_transaction(
        self,
        actions: Sequence[AddAction | RemoveAction],
        *,
        mode: str,
        commit_properties: CommitProperties,
        **_: object,
    ) -> None:
        """Commit; a blind append goes through beside other commits, unless one of them set the same application id."""
        assert mode == "append"
        made = _commit("WRITE", actions, commit_properties)
        removes = {one.path for one in actions if isinstance(one, RemoveAction)}
        what = f"commit on {short_name(self._uri)} version {self._version}"
        fault = self.store.scheduler.point(what, "refused", "lost", "crash after")
        if fault == "refused":
            raise DeltaError("the store does not answer")
        self._refuse_conflicts(set(made.applications), commit_properties.max_commit_retries)
        files = {path: size for path, size in self._newest.files.items() if path not in removes} | dict(made.files)
        self.store.append(self._uri, replace(made, files=files))
        self.store.answer(fault, what)

    def restore(self, target: int) -> None:
        """Bring an older version back; application ids stay."""
        what = f"RESTORE {short_name(self._uri)} to version {target}"
        self.store.scheduler.point(what)
        self._refuse_conflicts(set(), 0)
        text = json.dumps({"commitInfo": {"operation": "RESTORE", "operationParameters": {"version": str(target)}}})
        files = dict(self._log.versions[target].files)
        self.store.append(self._uri, Version(text, files, changes_metadata=True, removes_data=True))

    def delete(self, predicate: str, commit_properties: CommitProperties) -> None:
        """Delete rows by the predicate of a rewind."""
        fault = self.store.scheduler.point(f"DELETE in {short_name(self._uri)}", "refused", "lost", "crash after")
        if fault == "refused":
            raise DeltaError("the store does not answer")
        self._refuse_conflicts(set(), commit_properties.max_commit_retries)
        seen, *since = self._log.versions[self._version :]
        if any(one.changes_metadata or one.files != seen.files for one in since):
            raise CommitFailedError("a concurrent transaction changed the files")
        floors = {int(partition): int(offset) for partition, offset in _LATER.findall(predicate)}
        self._rewrite("DELETE", floors)
        self._version = len(self._log.versions) - 1
        self.store.answer(fault, f"DELETE in {short_name(self._uri)}")

    def optimize(self) -> None:
        """Join all files as another program does that follows the protocol: not where files are gone."""
        before = self._newest.files
        self.store.scheduler.point(f"OPTIMIZE {short_name(self._uri)}")
        if not before.keys() <= self._newest.files.keys() or len(before) < 2:
            return
        name = f"part-{self.store.new_name().hex}.parquet"
        tables = [self.store.data[f"{self._uri}/{path}"] for path in before]
        self.store.data[f"{self._uri}/{name}"] = pa.concat_tables(tables)
        files = {path: size for path, size in self._newest.files.items() if path not in before}
        text = json.dumps({"commitInfo": {"operation": "OPTIMIZE", "timestamp": 0}})
        self.store.append(self._uri, Version(text, files | {name: sum(before.values())}))

    def set_property(self) -> None:
        """Another writer changes a property of the table."""
        self.store.scheduler.point(f"set a property of {short_name(self._uri)}")
        text = json.dumps({"commitInfo": {"operation": "SET TBLPROPERTIES"}})
        self.store.append(self._uri, Version(text, self._newest.files, changes_metadata=True))

    def to_pyarrow_dataset(self, **_: object) -> "MemoryDataset":
        """The rows of this version."""
        return MemoryDataset(self.store, self._uri, list(self._log.versions[self._version].files))

    @property
    def _newest(self) -> Version:
        return self._log.versions[-1]

    def _refuse_conflicts(self, names: set[str], retries: int | None) -> None:
        since = self._log.versions[self._version + 1 :]
        if since and retries == 0:
            raise CommitFailedError("Failed to commit transaction: 0")
        for one in since[: _RETRIES if retries is None else retries]:
            if one.changes_metadata:
                raise CommitFailedError("Metadata changed since last commit.")
            if one.removes_data:
                raise CommitFailedError("a concurrent transaction deleted data this operation read")
            if names & one.applications.keys():
                raise CommitFailedError("Concurrent transaction failed.")

    def _rewrite(self, operation: str, floors: Mapping[int, int]) -> None:
        files = {}
        for path, size in self._newest.files.items():
            rows = self.store.rows(f"{self._uri}/{path}")
            if not any(offset >= floors.get(partition, 1 << 60) for partition, offset in rows):
                files[path] = size
                continue
            table = self.store.data[f"{self._uri}/{path}"]
            pairs = zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)
            left = table.filter(pa.array([offset < floors.get(partition, 1 << 60) for partition, offset in pairs]))
            name = f"part-{self.store.new_name().hex}.parquet"
            self.store.data[f"{self._uri}/{name}"] = left
            files[name] = left.num_rows
        text = json.dumps({"commitInfo": {"operation": operation}})
        self.store.append(self._uri, Version(text, files, removes_data=True))


def _commit(
    operation: str,
    actions: Sequence[AddAction | RemoveAction],
    properties: CommitProperties,
    *more: Mapping[str, object],
) -> Version:
    """Return a version that has only the added files."""
    transactions = {one.app_id: one.version for one in properties.app_transactions or ()}
    note = (properties.custom_metadata or {}).get("kafka-azimuth", {})
    lines: list[Mapping[str, object]] = [{"commitInfo": {"operation": operation, "kafka-azimuth": note}}, *more]
    lines += [{"txn": {"appId": name, "version": number}} for name, number in transactions.items()]
    added = [one for one in actions if isinstance(one, AddAction)]
    adds = {one.path: one.size for one in added}
    lines += [{"add": _line(one)} for one in added]
    text = "\n".join(json.dumps(one, separators=(",", ":")) for one in lines)
    return Version(text, adds, transactions, adds=list(adds), note=note if isinstance(note, dict) else {})


def _line(one: AddAction) -> dict[str, Any]:
    return {
        "path": one.path,
        "size": one.size,
        "partitionValues": dict(one.partition_values),
        "modificationTime": one.modification_time,
        "dataChange": one.data_change,
        "stats": one.stats,
    }


class MemoryDataset:
    """The rows of one version of a table."""

    def __init__(self, store: Store, uri: str, paths: Sequence[str]) -> None:
        store.scheduler.point(f"read the rows of {short_name(uri)}")
        self._tables = [store.data[f"{uri}/{path}"] for path in paths]
        self.schema: pa.Schema | None = None  # that of the rows

    def get_fragments(self, filter: Any = None) -> list["MemoryDataset"]:  # noqa: A002, ARG002 -- Arrow's names
        """All rows: nothing is known of the files."""
        return [self]

    def to_batches(
        self,
        _schema: object = None,
        *,
        columns: Sequence[str],
        filter: Any = None,  # noqa: A002 -- Arrow's names
        **_: object,
    ) -> Iterator[pa.RecordBatch]:
        """Batches of some columns, of the rows that the filter lets through."""
        if self._tables:
            rows = pa.concat_tables([table.select(list(columns)) for table in self._tables])
            yield from (rows if filter is None else rows.filter(filter)).to_batches()
