"""An Iceberg table that implements `table_contract`: positions and data files in one commit of the catalog.

A commit asserts that the current snapshot is the one that was read. If another writer has committed since, but has set
none of the positions of this change, the change is committed on top of the new snapshot instead.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_sink.errors import ConflictError, SchemaError, TableError, plain_with_class
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.foreign_parquet import open_parquet
from spark_sink.lake.iceberg.added_columns import add_columns
from spark_sink.lake.iceberg.catalogs import identifier, is_absent, open_catalog
from spark_sink.lake.iceberg.columns import arrow_columns, field_ids, refuse_unwritable
from spark_sink.lake.iceberg.compaction import compact
from spark_sink.lake.iceberg.data_entries import entry, location, partition_of, with_place
from spark_sink.lake.iceberg.gone_files import began_ms, exists, with_files
from spark_sink.lake.iceberg.landing import IcebergLanding, files_of, folder_of
from spark_sink.lake.iceberg.partition_terms import terms_of
from spark_sink.lake.iceberg.positions_in_table_properties import PROPERTY, GroupState, State, decode, encode
from spark_sink.lake.iceberg.repeated_requests import answered
from spark_sink.lake.iceberg.rollback_detection import NOTE, refuse_lost_positions, refuse_other_past, refuse_recreated
from spark_sink.lake.iceberg.snapshot_commit import Prepared, commit
from spark_sink.lake.iceberg.snapshot_expiry import expire
from spark_sink.lake.iceberg.stored_rows import StoredTable, open_stored
from spark_sink.lake.iceberg.table_creation import create_table
from spark_sink.lake.parquet_landing import storage_errors
from spark_sink.lake.schema_fit import fit_schema, refuse_new
from spark_sink.lake.second_group import refuse_second_group
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_contract import KEYS, Change, DataFile, Quarantined, Snapshot, create_and_look
from spark_sink.lake.table_settings import TableSettings
from spark_sink.lake.trimmed_copies import trimmed_copy
from spark_sink.lake.vacuumed_files import refuse_missing
from spark_sink.ranges.batch_offset import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_ATTEMPTS = 5
_MOST_NAMED = 16


class IcebergTable:
    """An Iceberg table for one consumer group; implements `Table`.

    Args:
        address: from `iceberg_address`.
        group: the consumer group.
        storage: options, with those of the catalog.
        settings: settings for creating and changing the table.
        rolled_back: accept a table that was rolled back, to repair its positions.
    """

    def __init__(
        self,
        address: str,
        group: str,
        storage: Storage | None = None,
        settings: TableSettings | None = None,
        *,
        rolled_back: bool = False,
    ) -> None:
        self._address = address
        self._identifier = identifier(address)
        self._group = group
        self._storage = dict(storage or {})
        self._settings = settings or TableSettings()
        self._table: Table | None = None
        self._text: str | None = None
        self._state = State()
        self._seen: dict[int, GroupState] = {}
        self._refuse_past = refuse_lost_positions if rolled_back else refuse_other_past
        self._rewinds: int | None = None

    @property
    def name(self) -> str:
        """The catalog, the namespace and the table."""
        return self._identifier.name

    @property
    def stored(self) -> StoredTable | None:
        """The table as it was read last; None if it was not."""
        table = self._table
        return None if table is None else StoredTable(name=self.name, table=table, state=self._state)

    def refresh(self) -> Snapshot | None:
        """Read the newest version; None if there is no table.

        Raises:
            TableError: the table cannot be read, was replaced by another table or an older version, or was rewound
                since the last look. The caller starts again, so this is raised once.
        """
        try:
            table = self._load()
        except TableError:
            if self._table is not None:
                self._rewinds = self._state.rewinds
            raise
        self._rewinds = self._state.rewinds  # also without a table, which another writer may create and rewind
        if table is None:
            return None
        state = self._group_state()
        version = _version(table)
        self._seen = {version: state}
        return Snapshot(
            version=version,
            positions=state.positions,
            schema=arrow_columns(table.schema()),
            replays=state.replays,
            identities=state.identities,
            quarantined=state.quarantined,
            writes=state.writes,
            beginnings=state.beginnings,
        )

    def newest(self) -> Snapshot | None:
        """Read the newest version, which the catalog always names; it raises what `refresh` raises."""
        return self.refresh()

    def create(self, schema: pa.Schema) -> None:
        """Create the table and its namespace; no error if another writer was faster.

        Raises:
            SchemaError, TableError: as `create_table`.
        """
        create_table(self._identifier, self._storage, self._settings, schema, self._exists)

    def begin(self, schema: pa.Schema) -> Snapshot:
        """Create the table, and return its first state; it raises what `create` and `refresh` raise."""
        return create_and_look(self, schema)

    def landing(self, schema: pa.Schema) -> IcebergLanding:
        """Return the writer of a task's rows; a missing table is created, and missing columns are added if allowed.

        Raises:
            SchemaError: the columns do not fit the table.
            TableError: the table cannot be read or created.
        """
        if self._load() is None:
            self.create(schema)
        for _ in range(_ATTEMPTS):
            table = self._load()
            if table is None:
                break
            try:
                self._fit(arrow_columns(table.schema()), schema)
            except ConflictError:
                continue
            self._refuse_other_partitioning(table)
            return IcebergLanding(table, schema, self._settings.layout)
        raise TableError(
            f"{self.name}: the table was created or changed and is gone again; is another program deleting it?"
        )

    def add_columns(self, columns: pa.Schema) -> None:
        """Add columns that the table lacks and can have; no error if other writers were faster, or the catalog refused.

        Raises:
            SchemaError: Iceberg does not have the type of a column.
            TableError: the table cannot be read.
        """
        add_columns(self.name, self._load, columns, needed=False)

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        """Commit the change on top of the snapshot.

        Raises:
            ConflictError: another writer was faster; nothing was changed.
            SchemaError: the columns do not fit.
            TableError: the catalog refused; the commit may or may not have succeeded.
        """
        seen, table = self._seen.get(snapshot.version), self._table
        if seen is None or table is None:
            raise ConflictError(f"{self.name}: version {snapshot.version} is not the one that was looked at last")
        self._fit(snapshot.schema, change.schema)
        lost: ConflictError | None = None
        for _ in range(_ATTEMPTS):
            if lost is not None and self._load() is None:
                raise lost
            # On each look: another group may have begun in between.
            self.refuse_other_groups(change.beginnings.__contains__)
            if self._group_state().conflicts(change, seen) or arrow_columns(table.schema()) != snapshot.schema:
                raise ConflictError(f"{self.name}: another writer was faster")
            bad = () if change.quarantined is None else change.quarantined.files
            written = {location(file): file.written_ms for file in (*change.files, *bad)}
            refuse_missing(self.name, written, partial(exists, table))
            try:
                self._commit(table, change)
            except ConflictError as error:
                lost = error
            else:
                return
        raise lost or ConflictError(f"{self.name}: another writer was faster")

    def refuse_other_groups(self, begins: Callable[[TopicPartition], bool]) -> None:
        """Refuse to begin partitions that another group has written, up to the last `refresh`.

        Args:
            begins: whether this group begins to write a partition.

        Raises:
            TableError: another group has written such a partition.
        """
        by_group = {group: state.positions for group, state in self._state.groups.items()}
        refuse_second_group(self.name, self._group, by_group, begins)

    def filtered(self, file: DataFile, floors: Mapping[TopicPartition, int]) -> DataFile | None:
        """Copy the rows at or above the floor of their partition.

        Raises:
            TableError: the storage refused.
        """
        table = self._table or self._load()
        if table is None:
            raise TableError(f"{self.name}: there is no table")
        with storage_errors(location(file)), table.io.new_input(location(file)).open() as stream:
            rows = open_parquet(stream).read()
        copy = trimmed_copy(files_of(table), rows, floors, self._settings.layout)
        return copy and with_place(copy, folder_of(table), field_ids(rows.schema), partition_of(file))

    def named_quarantine(
        self, asked: Iterable[TopicPartition], held: Mapping[TopicPartition, int]
    ) -> Sequence[Quarantined]:
        """Return bad rows that commits up to the last `refresh` named and the quarantine lacks, oldest first.

        Raises:
            LostRecordsError: their files are gone.
        """
        wanted = set(asked)
        found: list[Quarantined] = []
        for one in reversed(self._group_state().named):
            lacking = {key for key, end in one.ends.items() if end > held.get(key, 0)}
            if lacking & wanted:
                found.append(one)
                wanted |= one.ends.keys()
        if not found or self._table is None:
            return ()
        return with_files(self.name, self._table, found[::-1], self._quarantine_began_ms if not held else lambda: 0)

    def compact(self, every: int) -> bool:
        """Expire the older half of more than `every` snapshots, and then join small files.

        Args:
            every: the largest number of snapshots without an expiry; 0 for never.

        Returns:
            Whether this call expired snapshots. A failure is only logged, because the batch before it is committed.
        """
        if not every or self._table is None or not expire(self._table, self._state.snapshot, every):
            return False
        compact(self.name, self._load, self._settings.layout)
        return True

    def notes(self, first: int) -> tuple[int, list[dict[str, Any]]]:
        """Read the notes of commits from the snapshots.

        Args:
            first: the lowest sequence number to read.

        Returns:
            The newest sequence number, 0 without a table, and the notes in the order of the commits.
        """
        table = self._load()
        if table is None:
            return 0, []
        found = [one for one in table.metadata.snapshots if (one.sequence_number or 0) >= first and one.summary]
        texts = [one.summary.additional_properties.get(NOTE) for one in found if one.summary]
        return _version(table), [json.loads(text) for text in texts if text]

    def _commit(self, table: "Table", change: Change) -> None:
        metadata = table.metadata
        number = metadata.new_snapshot_id()
        state = self._group_state().after(change, self._held(change))
        after = replace(
            self._state,
            groups={**self._state.groups, self._group: state},
            snapshot=number,
            sequence=metadata.next_sequence_number(),
        )
        entries = [entry(self.name, one, metadata) for one in change.files]
        text = encode(after)
        note = {NOTE: json.dumps(dict(change.note), separators=(",", ":"))}
        commit(table, number, Prepared(entries=entries, properties={PROPERTY: text}, summary=note))
        if table.metadata.current_snapshot_id == number:
            self._text, self._state = text, after

    def _held(self, change: Change) -> Mapping[TopicPartition, int]:
        """Return the positions of the quarantine, if enough bad rows are named to look which of them it has."""
        if change.quarantined is None or len(self._group_state().named) < _MOST_NAMED:
            return {}
        found = IcebergTable(quarantine_of(self._address), self._group, self._storage).refresh()
        return found.positions if found else {}

    def _quarantine_began_ms(self) -> float:
        found = open_stored(quarantine_of(self._address), self._storage)
        return math.inf if found is None else began_ms(found.table)

    def _load(self) -> "Table | None":
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            if self._table is None:
                if is_absent(self._storage):  # a look creates no catalog
                    return None
                catalog = open_catalog(self._identifier.catalog, self._storage)
                self._take(self._asked(catalog))
            else:
                now = self._asked(self._table.catalog)
                refuse_recreated(self.name, self._table, now)
                self._table.metadata, self._table.metadata_location = now.metadata, now.metadata_location
                # A REST catalog may vend credentials that expire.
                self._table.io, self._table.config = now.io, now.config
                self._take(self._table)
        except (NoSuchTableError, NoSuchNamespaceError):
            if self._table is not None:
                raise TableError(
                    f"{self.name}: the table was deleted while the query ran; nothing more is written. Restore it, or "
                    "start the query again with a new checkpoint"
                ) from None
            return None
        except TableError:
            raise
        except Exception as error:  # each catalog has its own errors
            raise TableError(f"{self.name}: the table cannot be read: {plain_with_class(error)}") from error
        return self._table

    def _asked(self, catalog: "Catalog") -> "Table":
        return answered(self.name, lambda: catalog.load_table(self._identifier.path))

    def _take(self, table: "Table") -> None:
        refuse_unwritable(self.name, table)
        text = table.metadata.properties.get(PROPERTY)
        if text != self._text or text is None:
            self._text, self._state = text, decode(text, self.name)
        self._refuse_past(self.name, table.metadata, self._state)
        self._table = table
        if self._rewinds not in {None, self._state.rewinds}:
            raise TableError(
                f"{self.name}: `azimuth rewind` set the positions back while this process was running; nothing was "
                "written. Agents of a fleet continue from the new positions by themselves; start other processes "
                "again, a Spark query with a new checkpoint"
            )

    def _group_state(self) -> GroupState:
        return self._state.groups.get(self._group, GroupState())

    def _exists(self) -> bool:
        try:
            return self._load() is not None
        except TableError:  # called after the catalog has refused, so this request may be refused, too
            return False

    def _fit(self, have: pa.Schema, want: pa.Schema) -> None:
        new = fit_schema(self.name, have, want)
        if not new:
            return
        self._refuse_nameless([one.name for one in new])
        if not self._settings.merge_schema:
            refuse_new(self.name, have, new)
        add_columns(self.name, self._load, want, needed=True)
        raise ConflictError(f"{self.name}: columns were added, so the table must be looked at again")

    def _refuse_nameless(self, lacking: Sequence[str]) -> None:
        """Refuse a table whose rows have lost a column that identifies records: a new one has no value in them."""
        gone = [name for name in KEYS if name in lacking]
        if gone and any(state.positions for state in self._state.groups.values()):
            raise SchemaError(
                f"{self.name}: the table has records of Kafka and no column {gone[0]!r}, which identifies them, so it "
                "was dropped or renamed; nothing was committed. Rename it back, or write to another table"
            )

    def _refuse_other_partitioning(self, table: "Table") -> None:
        wanted, found = tuple(self._settings.terms), terms_of(table.spec(), table.schema()) or ()
        if wanted and wanted != found:
            have, want = (", ".join(map(str, terms)) for terms in (found, wanted))
            raise SchemaError(
                f"{self.name}: the table is partitioned by {have or 'nothing'}, and partitionBy is {want}; leave "
                "partitionBy out, or write to another table"
            )


def _version(table: "Table") -> int:
    """Return the newest sequence number: every commit with a snapshot raises it, and no rollback lowers it."""
    return table.metadata.next_sequence_number() - 1
