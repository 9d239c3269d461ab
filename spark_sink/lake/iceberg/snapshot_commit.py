"""One commit to an Iceberg table: data files, properties and the assertions, in one request that is never repeated.

pyiceberg's own commit is repeated four times by default. Each time it builds the assertion again from the newest
snapshot, so a writer that lost would commit its rows after those of the writer that won. Here the assertion names the
snapshot that was looked at, and a lost race is an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_sink.errors import ConflictError, TableError, plain, plain_with_class
from spark_sink.lake.iceberg.clock_order import next_time_ms

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as Entry
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.table.update.snapshot import _SnapshotProducer


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A change that is prepared, and committed by `commit`.

    Attributes:
        entries: files to add; none for a commit that changes properties only, which still adds a snapshot.
        properties: properties to set. One of them names the new snapshot, so the caller chooses its id.
        summary: notes for the table's history.
        removed: files to remove; each must be in the snapshot.
        same_rows: the files to add have the rows of those to remove, so streaming readers skip the snapshot.
    """

    entries: Sequence["Entry"]
    properties: Mapping[str, str]
    summary: Mapping[str, str]
    removed: Sequence["Entry"] = ()
    same_rows: bool = False


def commit(table: "Table", snapshot: int, prepared: Prepared) -> None:
    """Commit once, on top of the table as it was read.

    Every commit adds a snapshot, even without files: Iceberg cannot assert properties, so two writers of positions
    conflict only by their snapshots.

    Args:
        table: the table as it was read; it has the new metadata after a success.
        snapshot: id of the new snapshot.
        prepared: the commit.

    Raises:
        ConflictError: another writer was faster; nothing was changed.
        TableError: the commit failed, or its answer was lost; it may or may not have succeeded.
    """
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.table.update import SetPropertiesUpdate

    from spark_sink.lake.iceberg.snapshot_producers import ReadTransaction, name_any_day

    name_any_day()
    updates: tuple[TableUpdate, ...]
    transaction = ReadTransaction(table)
    try:
        producer = _producer(transaction, prepared)
    except ValueError as error:  # it reads the table's properties
        raise TableError(f"{'.'.join(table.name())}: nothing was written: {plain(error)}") from error
    producer._snapshot_id = snapshot  # noqa: SLF001 -- the positions in the properties name this snapshot
    for one in prepared.removed:
        producer.delete_data_file(one)
    for one in prepared.entries:
        producer.append_data_file(one)
    try:
        producer.commit()  # writes the manifests; the catalog sees nothing of them yet
        updates, requirements = transaction._updates, transaction._requirements  # noqa: SLF001 -- without the retries of commit_transaction
        updates = tuple(_continuing(one, table.metadata) for one in updates)
        if prepared.properties:
            updates = SetPropertiesUpdate(updates=dict(prepared.properties)), *updates
        table._do_commit(updates, (*requirements, *assertions(table)))  # noqa: SLF001 -- once, and cleans old metadata files
    except CommitFailedException as error:
        if _landed(table, snapshot):
            return
        # The manifests stay: if the second look failed, the commit may have landed, and its snapshot names them.
        raise ConflictError(f"{'.'.join(table.name())}: {plain(error)}") from error
    except Exception as error:  # SQL, HTTP or Thrift: each catalog has its own errors
        if _landed(table, snapshot):
            return
        raise TableError(f"{'.'.join(table.name())}: the commit failed: {plain_with_class(error)}") from error


def _continuing(update: "TableUpdate", metadata: "TableMetadata") -> "TableUpdate":
    """Let the new snapshot be later than the last change, and keep the retention that the branch has."""
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate

    if isinstance(update, AddSnapshotUpdate):
        at_ms = next_time_ms(metadata, update.snapshot.timestamp_ms)
        return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"timestamp_ms": at_ms})})
    if isinstance(update, SetSnapshotRefUpdate) and (former := metadata.refs.get(update.ref_name)) is not None:
        names = "max_ref_age_ms", "max_snapshot_age_ms", "min_snapshots_to_keep"
        return update.model_copy(update={name: getattr(former, name) for name in names})
    return update


def _producer(transaction: "Transaction", prepared: Prepared) -> "_SnapshotProducer[Any]":
    from pyiceberg.table.snapshots import Operation

    from spark_sink.lake.iceberg.snapshot_producers import AddFiles, RemoveFiles, ReplaceFiles

    summary, files = dict(prepared.summary), transaction._table.io  # noqa: SLF001 -- as `update_snapshot`
    if not prepared.removed:
        return AddFiles(Operation.APPEND, transaction, files, snapshot_properties=summary)
    kind = ReplaceFiles if prepared.same_rows else RemoveFiles
    return kind(Operation.OVERWRITE, transaction, files, snapshot_properties=summary)


def assertions(table: "Table") -> Sequence["TableRequirement"]:
    """Return what a commit requires of the table beside its snapshot: its identity, its columns and its partitions."""
    from pyiceberg.table.update import (
        AssertCurrentSchemaId,
        AssertDefaultSpecId,
        AssertTableUUID,
    )

    metadata = table.metadata
    return [
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertCurrentSchemaId(current_schema_id=metadata.current_schema_id),  # type: ignore[call-arg]  # an alias
        AssertDefaultSpecId(default_spec_id=metadata.default_spec_id),  # type: ignore[call-arg]  # an alias
    ]


def _landed(table: "Table", snapshot: int) -> bool:
    """Return whether a conflict is that of our own commit: a proxy may repeat a request whose answer was lost."""
    try:
        table.refresh()
    except Exception:  # noqa: BLE001 -- the caller looks again and reports what it finds
        return False
    return table.metadata.snapshot_by_id(snapshot) is not None
