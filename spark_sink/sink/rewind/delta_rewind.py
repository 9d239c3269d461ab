"""Sets positions back to what the rows hold, after a RESTORE or another change that removed rows of a Delta table.

After a RESTORE these are the positions of the version that it brought back, else the offsets after the rows.

The table comes first, its quarantine second. After a crash between the two the quarantine is ahead of its table. The
sink refuses this state, and the next rewind completes it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from spark_sink.errors import TableError, plain
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_log_reader import OURS, TransactionLog
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.fenced_replacement import active_paths
from spark_sink.lake.holes_and_doubles import named_group, scan_table
from spark_sink.lake.matching_tables import refuse_quarantine
from spark_sink.lake.newest_version import newest_handle
from spark_sink.lake.positions_in_delta_log import (
    application,
    groups,
    parse_group,
    parse_positions,
    quarantined,
    replays,
    rewound,
)
from spark_sink.lake.table_addresses import Storage, is_iceberg, table_uri
from spark_sink.lake.table_dataset import rows_where
from spark_sink.lake.table_storage import is_delta_table, no_delta_table
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.quarantine.quarantine_commit import add_those_left, has_lost, refuse_other_table
from spark_sink.sink.rewind.bad_records_after_quarantine_restore import find_taken, put_back
from spark_sink.sink.rewind.bad_records_after_table_restore import Removed, bring_back, find_removed, from_offsets
from spark_sink.sink.rewind.iceberg_rewind import rewind_iceberg
from spark_sink.sink.rewind.positions_of_restored_version import lineage_positions, past_bad_records
from spark_sink.sink.rewind.rewind_commit import NOTE, set_numbers
from spark_sink.sink.rewind.set_back_positions import Rewound, ahead, behind, quarantine_changes

_HOW = "a RESTORE brought back rows that an earlier one had taken"


def rewind(
    table: str,
    group: str | None = None,
    storage: Storage | None = None,
    *,
    apply: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Sequence[Rewound]:
    """Set positions that are ahead of the rows back, and remove later records from the quarantine.

    Bad records that a RESTORE of the quarantine removed are put back. Stop the agents first: a commit in between fails
    this call.

    Args:
        table: address of the table, of either format.
        group: the consumer group; not needed if there is only one.
        storage: options of the object store, or of the catalog.
        apply: write the change; otherwise only report it.
        tell: is called with a sentence about each change of the quarantine, once it is made.

    Returns:
        Partitions whose position changes.

    Raises:
        TableError: the table cannot be read, it is a quarantine, the table at its quarantine's address is not one,
            or another writer committed in between.
    """
    refuse_quarantine("rewind", table, storage)
    if is_iceberg(table):
        return rewind_iceberg(table, group, storage or {}, apply=apply, tell=tell)
    uri, options = table_uri(table), dict(storage or {}) or None
    if not is_delta_table(uri, options):
        raise TableError(no_delta_table(uri))
    try:
        handle = newest_handle(uri, storage)
        log = TransactionLog(uri, storage)
        kept = dict(log.refresh(handle.version()))
        name = _group(uri, kept, group, storage)
        quarantine = DeltaLakeTable(quarantine_of(uri), name, storage, restored=True)
        refuse_other_table(quarantine.name, quarantine.refresh())
        taken = find_taken(uri, name, storage)
        restored = taken is not None and not taken.complete
        found, removed = _changes(handle, log, name, storage)
        if apply:
            put_back(uri, name, storage)
        if taken is not None and restored:
            back = "was put back" if apply else "would be put back"
            tell(f"{taken.address}: it was restored, and {back} to version {taken.before}")
        if apply and restored:
            found, removed = _changes(handle, log, name, storage)  # with the bad records that were put back
        later, lost = _count_ahead(log, name, found, storage), _has_lost(uri, name, storage)
        if apply:
            _add_named(uri, name, storage)
            bring_back(uri, name, removed, storage)
            _set_positions(handle, name, found, removed, log)
            _rewind_quarantine(uri, name, storage)
        for sentence in quarantine_changes(uri, quarantine.name, later, lost=lost, applied=apply):
            tell(sentence)
    except (DeltaError, OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise TableError(
            f"{uri}: the positions were not set: {plain(error).rstrip('.')}. Stop the agents, and run the command again"
        ) from error
    return found


def _group(uri: str, kept: Mapping[str, int], group: str | None, storage: Storage | None) -> str:
    """Return the group. A recreated table has none yet; its quarantine, which was kept, has it."""
    known, address = groups(kept), quarantine_of(uri)
    if not known and is_delta_table(address, storage):
        known = groups(TransactionLog(address, storage).refresh())
    return named_group(uri, known, group)


def _changes(
    handle: DeltaTable, log: TransactionLog, group: str, storage: Storage | None
) -> tuple[list[Rewound], Removed]:
    """Compare the positions with the rows: find positions to set back, and bad records to bring back.

    Bad records at or above a position belong to no row, so they do not count: the quarantine is ahead of its table, or
    was restored and has records that an earlier rewind took out.
    """
    uri, kept = log.uri, log.transactions
    find_version = partial(_restored_version, uri, dict(storage or {}) or None)
    ends, positions = _row_ends(handle, kept, group), parse_positions(kept, group)
    reached = lineage_positions(log, group, handle, storage, find_version)
    ends |= {key: max(end, min(reached.get(key, end), positions[key])) for key, end in ends.items()}
    removed = Removed()
    if kept.get(rewound(group), -1) >= 0:
        removed = find_removed(uri, log.earlier_commits(), group, ends, find_version)
    # A RESTORE of the table takes its bad records back as well: those of the version that came back count.
    if not removed.floors and log.restored <= kept.get(rewound(group), -1):
        past = past_bad_records(quarantine_of(uri), group, storage, ends)
        ends |= {key: max(ends[key], min(end, positions[key])) for key, end in past.items()}
    return behind(uri, ends, positions, _HOW), removed


def _count_ahead(log: TransactionLog, group: str, found: Sequence[Rewound], storage: Storage | None) -> int:
    """Count the records of the quarantine that are at or above the new positions of the table."""
    address, options = quarantine_of(log.uri), dict(storage or {}) or None
    if not is_delta_table(address, options):
        return 0
    reached = parse_positions(log.transactions, group) | {one.key: one.after for one in found}
    too_far = ahead(parse_positions(TransactionLog(address, storage).refresh(), group), reached)
    if not too_far:
        return 0

    def above(topic: pc.Expression) -> pc.Expression:
        each = [
            (topic == key.topic) & (pc.field("partition") == key.partition) & (pc.field("offset") >= at)
            for key, at in too_far.items()
        ]
        return reduce(or_, each)

    rows = rows_where(newest_handle(address, storage), above, ["topic", "partition", "offset"])
    return sum(batch.num_rows for batch in rows)


def _row_ends(handle: DeltaTable, kept: Mapping[str, int], group: str) -> dict[TopicPartition, int]:
    """Return the offset after the last row, by partition; the group's first offset if a partition has no rows."""
    rows, own = scan_table(handle), parse_group(kept, group)
    return {
        key: max((end for _, end in rows[key]), default=0) if key in rows else own.beginnings.get(key, before)
        for key, before in own.positions.items()
    }


def _restored_version(uri: str, options: dict[str, str] | None, at: int) -> int:
    """Return the version that a RESTORE by time brought back: the newest earlier one with the same files."""
    files = _files(uri, options, at)
    for one in range(at - 1, -1, -1):
        if _files(uri, options, one) == files:
            return one
    raise TableError(f"{uri}: no version before {at} has the files that the RESTORE brought back; nothing was changed")


def _files(uri: str, options: dict[str, str] | None, version: int) -> set[str]:
    return active_paths(DeltaTable(uri, version=version, storage_options=options))


def _has_lost(uri: str, group: str, storage: Storage | None) -> bool:
    table, quarantine = (DeltaLakeTable(one, group, storage, restored=True) for one in (uri, quarantine_of(uri)))
    return has_lost(table, quarantine)


def _add_named(uri: str, group: str, storage: Storage | None) -> None:
    """Complete the quarantine first, because bad records below the new positions stay in it; give up those gone."""
    quarantine = DeltaLakeTable(quarantine_of(uri), group, storage)  # a RESTORE since it was put back is refused
    add_those_left(DeltaLakeTable(uri, group, storage, restored=True), quarantine)


def _set_positions(
    handle: DeltaTable, group: str, found: Sequence[Rewound], removed: Removed, log: TransactionLog
) -> None:
    named = parse_group(log.transactions, group).quarantined
    numbers = {application(group, one.key): one.after for one in found}
    numbers |= {quarantined(group, one.key): one.after for one in found if named.get(one.key, 0) > one.after}
    if found:
        numbers |= _fence_of_replays(log.transactions, group)
    set_numbers(handle, group, numbers, log, {**{one.key: one.after for one in found}, **removed.floors})


def _fence_of_replays(kept: Mapping[str, int], group: str) -> dict[str, int]:
    """Make a running replay fail and look again: its records may be above the new positions, and come a second time."""
    return {replays(group): kept.get(replays(group), 0) + 1}


def _rewind_quarantine(uri: str, group: str, storage: Storage | None) -> None:
    address, options = quarantine_of(uri), dict(storage or {}) or None
    if not is_delta_table(address, options):
        return
    # The quarantine is read first, because an agent that runs adds to it after its table. The other way round, what it
    # adds between the two reads would look as if it were ahead of the table, and be deleted.
    handle = newest_handle(address, storage)
    log = TransactionLog(address, storage)
    held = parse_positions(log.refresh(handle.version()), group)
    _refuse_unresolved(log, group)
    too_far = ahead(held, parse_positions(TransactionLog(uri, storage).refresh(), group))
    if too_far:
        # No retries and no newer version: the positions are set onto exactly what was compared.
        note = CommitProperties(custom_metadata={OURS: dict(NOTE)}, max_commit_retries=0)
        handle.delete(from_offsets(too_far), commit_properties=note)
        log.refresh(handle.version())
    set_numbers(handle, group, {application(group, key): at for key, at in too_far.items()}, log)


def _refuse_unresolved(log: TransactionLog, group: str) -> None:
    """Refuse to mark a RESTORE as resolved that came after the records of earlier ones were put back."""
    if log.restored > log.transactions.get(rewound(group), -1):
        raise TableError(f"{log.uri}: version {log.restored} is a RESTORE that came meanwhile; run the command again")
