"""Sets positions back to the offsets of the rows, after a RESTORE or another change that removed rows.

The table comes first, its quarantine second. After a crash between the two the quarantine is ahead of its table. The
sink refuses this state, and the next rewind completes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError

from spark_sink.errors import TableError, plain
from spark_sink.formats.quarantined_rows import quarantine_of
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.delta_transactions import OURS, TransactionLog
from spark_sink.lake.positions import (
    application,
    parse_beginnings,
    parse_positions,
    parse_quarantined,
    quarantined,
    rewound,
)
from spark_sink.lake.table_storage import Storage, table_uri
from spark_sink.lake.verification import scan_table, the_group
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.quarantine_commit import add_quarantined

_NOTE = {OURS: {"kind": "rewind", "rows": 0}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound:
    """The position of one partition.

    Attributes:
        key: the partition.
        before: the table's position.
        after: the position by the rows; the group's first offset if the partition has no rows.
    """

    key: TopicPartition
    before: int
    after: int


def rewind(
    table: str, group: str | None = None, storage: Storage | None = None, *, apply: bool = False
) -> Sequence[Rewound]:
    """Set positions that are ahead of the rows back, and remove later records from the quarantine.

    Stop the agents first: a commit in between fails this call.

    Args:
        table: address of the table.
        group: the consumer group; not needed if there is only one.
        storage: options of the object store.
        apply: write the change; otherwise only report it.

    Returns:
        Partitions whose position changes.

    Raises:
        TableError: the table cannot be read, or another writer committed in between.
    """
    uri, options = table_uri(table), dict(storage or {}) or None
    if not DeltaTable.is_deltatable(uri, options):
        raise TableError(f"{uri}: there is no Delta table")
    try:
        handle = DeltaTable(uri, storage_options=options)
        log = TransactionLog(uri, storage)
        kept = dict(log.refresh(handle.version()))
        name = the_group(uri, kept, group)
        found = _behind(uri, handle, kept, name)
        if apply:
            _add_named(uri, name, storage)
            _set_positions(handle, name, kept, found, log)
            _rewind_quarantine(uri, name, storage)
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise TableError(
            f"{uri}: the positions were not set: {plain(error)}. Stop the agents, and run the command again"
        ) from error
    return found


def _behind(uri: str, handle: DeltaTable, kept: Mapping[str, int], group: str) -> list[Rewound]:
    rows, beginnings = scan_table(handle), parse_beginnings(kept, group)
    found = []
    for key, before in sorted(parse_positions(kept, group).items()):
        after = max((end for _, end in rows[key]), default=0) if key in rows else beginnings.get(key, before)
        if after > before:
            raise TableError(
                f"{uri}: the table has rows of {key.topic}/{key.partition} up to offset {after}, past its position "
                f"{before}: a RESTORE brought back rows that an earlier one had taken. Nothing was changed; delete the "
                f"rows of this partition from offset {before} on, and run the command again"
            )
        if after < before:
            found.append(Rewound(key=key, before=before, after=after))
    return found


def _add_named(uri: str, group: str, storage: Storage | None) -> None:
    """Complete the quarantine first, because bad records below the new positions stay in it."""
    table = DeltaLakeTable(uri, group, storage, restored=True)
    snapshot = table.refresh()
    if snapshot is not None and snapshot.quarantined:
        quarantine = DeltaLakeTable(quarantine_of(uri), group, storage, restored=True)
        add_quarantined(table, quarantine, snapshot.quarantined)


def _set_positions(
    handle: DeltaTable, group: str, kept: Mapping[str, int], found: Sequence[Rewound], log: TransactionLog
) -> None:
    named = parse_quarantined(kept, group)
    numbers = {application(group, one.key): one.after for one in found}
    numbers |= {quarantined(group, one.key): one.after for one in found if named.get(one.key, 0) > one.after}
    _set(handle, group, numbers, log)


def _rewind_quarantine(uri: str, group: str, storage: Storage | None) -> None:
    address, options = quarantine_of(uri), dict(storage or {}) or None
    if not DeltaTable.is_deltatable(address, options):
        return
    reached = parse_positions(TransactionLog(uri, storage).refresh(), group)
    handle = DeltaTable(address, storage_options=options)
    log = TransactionLog(address, storage)
    held = parse_positions(log.refresh(handle.version()), group)
    ahead = {key: reached.get(key, 0) for key, at in held.items() if at > reached.get(key, 0)}
    if ahead:
        later = " OR ".join(
            f'(topic = \'{key.topic}\' AND "partition" = {key.partition} AND "offset" >= {at})'
            for key, at in sorted(ahead.items())
        )
        handle.delete(later, commit_properties=CommitProperties(custom_metadata=_NOTE))
        handle.update_incremental()
    numbers = {application(group, key): at for key, at in ahead.items()}
    _set(handle, group, numbers, log)


def _set(handle: DeltaTable, group: str, numbers: Mapping[str, int], log: TransactionLog) -> None:
    """Set positions, and the mark by which the group's running writers detect the rewind."""
    if not numbers and log.restored <= log.transactions.get(rewound(group), -1):
        return
    numbers = {**numbers, rewound(group): handle.version()}
    handle.create_write_transaction(
        [],
        mode="append",
        schema=handle.schema(),
        partition_by=handle.metadata().partition_columns,
        commit_properties=CommitProperties(
            app_transactions=[Transaction(name, number) for name, number in numbers.items()],
            custom_metadata=_NOTE,
            max_commit_retries=0,  # a commit after the rows were read must make this one fail
        ),
    )
