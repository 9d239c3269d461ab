"""A Delta table that implements `table_contract`: one handle, with compare and swap.

The handle is the fence: delta-rs checks a commit against all commits after the handle's version. It refuses the commit
if one of them set the same application id, or changed the columns. A commit by path opens a new handle at the newest
version, so nothing is checked, and a late writer could commit.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from spark_sink.errors import ConflictError, SchemaError, TableError, plain
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.formats.variant_type import arrow_columns, delta_field
from spark_sink.lake.compaction import Compaction
from spark_sink.lake.conditional_put_check import refuse_overwriting_store
from spark_sink.lake.delta_commit_parts import CommitParts
from spark_sink.lake.delta_creation import create_empty, create_with, created_id, is_plain
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.delta_transaction import commit
from spark_sink.lake.foreign_parquet import open_parquet
from spark_sink.lake.newest_version import wait_for_listing
from spark_sink.lake.parquet_landing import normal_schema, storage_errors
from spark_sink.lake.positions_in_delta_log import (
    groups,
    parse_group,
    parse_positions,
    replays,
    rewound,
)
from spark_sink.lake.restore_refusal import refuse_restored
from spark_sink.lake.schema_fit import fit_schema, fitting, refuse_new, refuse_other_partitioning, refuse_unenforced
from spark_sink.lake.second_group import refuse_second_group
from spark_sink.lake.table_addresses import Storage, table_uri
from spark_sink.lake.table_contract import KEYS, NOT_CREATED, Change, DataFile, Quarantined, Snapshot, create_and_look
from spark_sink.lake.table_settings import TableSettings
from spark_sink.lake.table_storage import address_of, filesystem, repeated_if_cut, soon_refused
from spark_sink.lake.trimmed_copies import trimmed_copy
from spark_sink.lake.unwritten_quarantine import named_quarantine
from spark_sink.lake.vacuumed_files import refuse_gone
from spark_sink.ranges.batch_offset import TopicPartition

_log = logging.getLogger("azimuth.sink")
_ATTEMPTS = 5
_NEVER_FIRST = re.compile(r"Failed to commit transaction: \d+$")  # after so many attempts, each with a conflict


class DeltaLakeTable:
    """A Delta table for one consumer group; implements `Table`.

    Args:
        path: address of the table.
        group: the consumer group.
        storage: options of the object store.
        settings: settings for creating and changing the table.
        restored: accept a table after a RESTORE, to repair its positions.
    """

    def __init__(
        self,
        path: str,
        group: str,
        storage: Storage | None = None,
        settings: TableSettings | None = None,
        *,
        restored: bool = False,
    ) -> None:
        self._uri = table_uri(path)
        self._group = group
        self._storage = dict(storage or {})
        self._settings = settings or TableSettings()
        self._handle: DeltaTable | None = None
        self._id: object = None
        self._restored = restored
        self._checked = -1  # the change of the metadata up to which the table was checked
        self._ruled: int | None = None  # the same for its rules; None: not checked since the table was opened
        self._newest_version = -1
        self._rewound: int | None = None
        self._log = TransactionLog(self._uri, self._storage)
        self._compaction = Compaction(self._uri, self._log, self._storage)
        self._warned_of_doubles = False

    @property
    def name(self) -> str:
        """The address."""
        return self._uri

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Partition columns at the last refresh; empty before."""
        return tuple(self._handle.metadata().partition_columns) if self._handle is not None else ()

    def refresh(self) -> Snapshot | None:
        """Read the newest version; None if there is no table.

        Raises:
            TableError: the table cannot be read, or was replaced by another table.
            SchemaError: it lacks the columns that identify a record.
        """
        try:
            handle = repeated_if_cut(self._updated)
        except TableNotFoundError:
            if self._id is not None:
                raise TableError(
                    f"{self._uri}: the table was deleted while the query ran; nothing more is written. Restore it, or "
                    "start the query again with a new checkpoint"
                ) from None
            self._rewound = -1  # so that a rewind is noticed that comes before this process first finds the table
            return None
        except (DeltaError, OSError) as error:
            raise TableError(f"{self._uri}: the table cannot be read: {plain(error)}") from error
        found = self._log.refresh(handle.version())
        if self._checked != self._log.metadata_changed:
            self._refuse_other_table(handle)
            self._checked = self._log.metadata_changed
        self._refuse_other_past(handle.version(), found)
        own = parse_group(found, self._group)
        return Snapshot(
            version=handle.version(),
            positions=own.positions,
            schema=self._columns(handle),
            replays=found.get(replays(self._group), 0),
            identities=own.identities,
            quarantined=own.quarantined,
            writes=own.writes,
            beginnings=own.beginnings,
        )

    def _columns(self, handle: DeltaTable) -> pa.Schema:
        try:
            return _arrow_schema(handle)
        except SchemaError as error:  # a table of another program, perhaps at the address of a quarantine
            raise SchemaError(f"{self._uri}: this table has no records of topics: {error}") from error

    def newest(self) -> Snapshot | None:
        """Read the newest version, and wait some seconds for a listing that is behind.

        Raises:
            TableError: the listing stays behind; or as `refresh`.
        """
        files = filesystem(self._uri, self._storage)
        return wait_for_listing(
            self._uri,
            files,
            self.refresh(),
            self.refresh,
            lambda found: NOT_CREATED if found is None else found.version,
        )

    def create(self, schema: pa.Schema) -> None:
        """Create the table; no error if another writer was faster.

        Raises:
            SchemaError: Delta cannot have a column.
            TableError: the storage refused, or a property is invalid.
        """
        refuse_overwriting_store(self._uri, self._storage)
        try:
            # Kept, as it takes a third of the time of a first commit to read the new table again.
            self._handle = create_empty(self._uri, schema, self._settings, self._storage)
        except (DeltaError, OSError, ValueError) as error:
            if not self._exists() and not self._has_begun():
                raise TableError(f"{self._uri}: the table cannot be created: {plain(error)}") from error

    def begin(self, schema: pa.Schema) -> Snapshot:
        """Return the state of a table that the first swap creates: one commit takes half the time of two.

        A table that might refuse its first rows is created here, so that they are checked as all others. If it is there
        and only its listing is late, the swap has a conflict.

        Raises:
            SchemaError, TableError: as `create` and `refresh`.
        """
        if is_plain(schema, self._settings) or self._has_begun():
            return Snapshot(version=NOT_CREATED, positions={}, schema=schema)
        return create_and_look(self, schema)

    def add_columns(self, columns: pa.Schema) -> None:
        """Add columns and fields that the table lacks and can have; no error if other writers were faster each time.

        Raises:
            TableError: the table cannot be read.
        """
        for _ in range(_ATTEMPTS):
            snapshot, handle = self.refresh(), self._handle
            new = fitting(self._uri, snapshot.schema, columns) if snapshot else []
            if not new or handle is None:
                return
            with contextlib.suppress(DeltaError, OSError):
                handle.alter.add_columns(
                    [delta_field(one) for one in new], commit_properties=CommitProperties(max_commit_retries=0)
                )
                return

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        """Commit the change on top of the snapshot.

        Raises:
            ConflictError: another writer was faster; nothing was changed.
            SchemaError: the columns do not fit, or the table has a rule that data files cannot keep.
            TableError: the storage refused; the commit may or may not have succeeded.
        """
        handle = self._handle
        if _version(handle) != snapshot.version:
            raise ConflictError(f"{self._uri}: version {snapshot.version} is not the one that was looked at last")
        refuse_overwriting_store(self._uri, self._storage)
        with self._looked_at_again(handle):
            if handle is not None:
                self.refuse_rules()
                self._fit(handle, snapshot.schema, change.schema)
            refuse_other_partitioning(self._uri, self._partitioned(handle), change.files)
        if change.beginnings:
            self.refuse_other_groups(change.beginnings.__contains__)
        refuse_gone(self._uri, {file.path: file.written_ms for file in change.files}, self._storage)
        if change.quarantined is not None:
            bad = {file.path: file.written_ms for file in change.quarantined.files}
            refuse_gone(quarantine_of(self._uri), bad, self._storage)
        if handle is None:
            self._create_with(change)
        else:
            self._commit(handle, change)

    @contextlib.contextmanager
    def _looked_at_again(self, handle: DeltaTable | None) -> Iterator[None]:
        """Let no older version refuse a change: a newer one may have the columns, and a store may list it late."""
        try:
            yield
        except SchemaError as error:
            if not self._is_behind(handle):
                raise
            raise ConflictError(f"{self._uri}: a newer version may take what this one refuses: {error}") from error

    def _is_behind(self, handle: DeltaTable | None) -> bool:
        """Return whether a newer version is there than that of the handle."""
        with storage_errors(self._uri):
            return self._log.has_commit(_version(handle) + 1)

    def _commit(self, handle: DeltaTable, change: Change) -> None:
        own = CommitParts.of(change, self._group)
        # delta-rs retries a commit without checking the positions of other groups, so a group begins in one attempt.
        retries = 0 if change.beginnings else None
        try:
            commit(handle, own.files, own.transactions, own.note, retries)
        except CommitFailedError as error:
            if self._is_behind(handle):
                raise ConflictError(f"{self._uri}: {plain(error)}") from error
            if _NEVER_FIRST.search(str(error)):
                raise TableError(
                    f"{self._uri}: the store refused version {handle.version() + 1} each time as one that exists, and "
                    "it does not, so nothing was written. Do the store and each proxy before it know the condition "
                    "of a PUT (If-None-Match), and does no rule of the bucket, such as a retention, refuse new objects?"
                ) from error
            raise TableError(
                f"{self._uri}: delta-rs refuses to write to the table, and nothing was written: {plain(error)}"
            ) from error
        except (DeltaError, OSError) as error:
            raise TableError(f"{self._uri}: the commit failed: {plain(error)}") from error

    def _create_with(self, change: Change) -> None:
        own = CommitParts.of(change, self._group)
        try:
            create_with(own, self._uri, change.schema, self._settings, self._storage)
        except (DeltaError, OSError, ValueError) as error:
            if self._has_begun():
                raise ConflictError(f"{self._uri}: the table was created meanwhile: {plain(error)}") from error
            raise TableError(f"{self._uri}: the table cannot be created: {plain(error)}") from error
        self._id = created_id(self._uri, self._storage)  # else a table in its place would be taken for this one

    def _partitioned(self, handle: DeltaTable | None) -> list[str]:
        return list(self._settings.layout.partition_columns) if handle is None else handle.metadata().partition_columns

    def refuse_other_groups(self, begins: Callable[[TopicPartition], bool]) -> None:
        """Refuse to begin partitions that another group has written, up to the last `refresh`.

        Args:
            begins: whether this group begins to write a partition.

        Raises:
            TableError: another group has written such a partition.
        """
        found = self._log.transactions
        by_group = {group: parse_positions(found, group) for group in groups(found)}
        refuse_second_group(self._uri, self._group, by_group, begins)

    def refuse_rules(self) -> None:
        """Refuse rules of the table that data files cannot keep, as of the last `refresh`; a reader need not keep them.

        Raises:
            SchemaError: there is such a rule.
        """
        if self._handle is not None and self._ruled != self._log.metadata_changed:
            refuse_unenforced(self._uri, self._handle)
            self._ruled = self._log.metadata_changed

    def filtered(self, file: DataFile, floors: Mapping[TopicPartition, int]) -> DataFile | None:
        """Copy the rows at or above the floor of their partition.

        Raises:
            TableError: the storage refused.
        """
        files = filesystem(self._uri, self._storage)
        with storage_errors(address_of(files, file.path)), files.open_input_file(file.path) as stream:
            rows = open_parquet(stream).read()
        values = file.partition_values
        constant = tuple(name for name in ("topic", "partition") if name in values)
        for name in constant:
            rows = rows.append_column(name, pa.repeat(pa.scalar(values[name]).cast(KEYS[name]), rows.num_rows))
        copy = trimmed_copy(files, rows, floors, replace(self._settings.layout, partition_columns=constant))
        return None if copy is None else replace(copy, partition_values=values)

    def named_quarantine(
        self, asked: Iterable[TopicPartition], held: Mapping[TopicPartition, int]
    ) -> list[Quarantined]:
        """Return bad rows that commits named and the quarantine lacks, oldest first; reads the log backwards.

        Raises:
            LostRecordsError: a commit that named some was cleaned up, or their files are gone.
        """
        return named_quarantine(self._log, self._group, asked, held)

    def compact(self, every: int) -> bool:
        """Compact small files once in `every` versions, see `Compaction`; return whether this call compacted.

        Before that, rows that an OPTIMIZE of another writer doubled are reported, once.
        """
        if self._handle is None:
            return False
        if self._log.doubled and not self._warned_of_doubles:
            self._warned_of_doubles = True
            _log.warning(
                "%s: an OPTIMIZE of another writer committed files that were rewritten before, so rows may be in the "
                "table twice: `azimuth verify` counts them, `azimuth repair` removes them",
                self._uri,
            )
        return self._compaction.run(self._handle, every)

    def _refuse_other_past(self, version: int, found: Mapping[str, int]) -> None:
        """Refuse a table that went back: a RESTORE keeps the positions, and an older copy has older positions."""
        if version < self._newest_version:
            raise TableError(
                f"{self._uri}: the log went back from version {self._newest_version} to {version}; nothing was "
                "written. Was an older copy put in its place? Restart the agents: they continue from its positions"
            )
        self._newest_version = version
        before, self._rewound = self._rewound, found.get(rewound(self._group), -1)
        if before not in {None, self._rewound}:
            # Later reads and commits of this process may be lost, so the caller starts again. Raised once.
            raise TableError(
                f"{self._uri}: `azimuth rewind` set the positions back while this process was running; nothing was "
                "written. Agents of a fleet continue from the new positions by themselves; start other processes "
                "again, a Spark query with a new checkpoint"
            )
        if not self._restored:
            refuse_restored(self._uri, self._log, self._group)

    def _exists(self) -> bool:
        # Called after the storage has refused, so this request may be refused, too.
        with contextlib.suppress(DeltaError, OSError):
            return DeltaTable.is_deltatable(self._uri, soon_refused(self._storage))
        return False

    def _has_begun(self) -> bool:
        # A listing may lack the first commit, or have other files of a log that is not whole. As for `_exists`, the
        # storage may refuse this request, too.
        with contextlib.suppress(OSError):
            return self._log.has_commit(0)
        return False

    def _updated(self) -> DeltaTable:
        if self._handle is not None and not self._log.moved():
            self._handle.update_incremental()
            return self._handle
        self._handle = self._ruled = None
        handle = self._opened()
        self._refuse_other_table(handle)
        self._handle = handle
        return handle

    def _opened(self) -> DeltaTable:
        """Open the table; wait some seconds for a listing that lacks a version that this process has seen."""
        handle = self._listed()
        known = self._newest_version if self._id is None else max(self._newest_version, 0)
        if _version(handle) < known and self._log.has_commit(known):
            files = filesystem(self._uri, self._storage)
            handle = wait_for_listing(self._uri, files, handle, self._listed, _version)
        if handle is None:
            raise TableNotFoundError(self._uri)
        return handle

    def _listed(self) -> DeltaTable | None:
        with contextlib.suppress(TableNotFoundError):
            return DeltaTable(self._uri, storage_options=self._storage or None)
        return None

    def _refuse_other_table(self, handle: DeltaTable) -> None:
        """Refuse another table at this address."""
        found = handle.metadata().id
        if self._id not in {None, found}:
            raise TableError(
                f"{self._uri}: the table was deleted and recreated while the query ran (id {self._id} became "
                f"{found}); nothing was written to the new one. Start the query again with a new checkpoint"
            )
        self._id = found

    def _fit(self, handle: DeltaTable, have: pa.Schema, want: pa.Schema) -> None:
        new = fit_schema(self._uri, have, want)
        if not new:
            return
        if not self._settings.merge_schema:
            refuse_new(self._uri, have, new)
        try:
            handle.alter.add_columns(
                [delta_field(one) for one in new], commit_properties=CommitProperties(max_commit_retries=0)
            )
        except (DeltaError, OSError) as error:
            raise ConflictError(f"{self._uri}: columns were not added: {plain(error)}") from error
        raise ConflictError(f"{self._uri}: columns were added, so the table must be looked at again")


def _version(handle: DeltaTable | None) -> int:
    return NOT_CREATED if handle is None else int(handle.version())


def _arrow_schema(handle: DeltaTable) -> pa.Schema:
    return normal_schema(arrow_columns(handle.schema()))
