"""Adds the bad rows that commits of a table name to its quarantine.

Only the table's commit decides about a record. It moves the position, adds the good rows and names the files of the bad
rows. So each offset is in exactly one of the two, whatever the next decoding of the same records gives. The
quarantine's commit follows, and moves the quarantine's position with the same compare and swap. After a crash between
the two, files are named but not added: the next writer of these partitions adds them, and the position prevents a
second writer from adding them again.
"""

import time
from collections.abc import Callable, Mapping, Sequence

from spark_sink.errors import TableError
from spark_sink.formats.bad_values_quarantined import SCHEMA
from spark_sink.formats.quarantine_addresses import base_of
from spark_sink.lake.table_contract import Change, LostRecordsError, Quarantined, Snapshot, Table
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import ATTEMPTS, Batch, Outcome, commit, swapped


class TableWithQuarantine:
    """A table and its quarantine, for the commits of one writer.

    Args:
        table: the table.
        quarantine: of the table.
        sleep: waits between attempts, in seconds.
    """

    def __init__(self, table: Table, quarantine: Table, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._table = table
        self._quarantine = quarantine
        self._sleep = sleep
        self._compared = False
        self._added: dict[TopicPartition, int] = {}  # bad rows up to here are in the quarantine

    def commit(self, batch: Batch) -> Outcome:
        """Commit a batch to the table, and its bad rows to the quarantine.

        Raises:
            HoleError: rows before this batch are missing.
            TableError: the table refuses the batch, or the quarantine refuses its bad rows.
        """
        outcome = commit(self._table, batch, self._quarantine, sleep=self._sleep)
        # The first time includes partitions of other agents: an agent may have died between its two commits.
        asked = batch.offset.ranges if self._compared else outcome.named
        behind = {key: end for key in asked if (end := outcome.named.get(key, 0)) > self._added.get(key, 0)}
        if behind or outcome.quarantined is not None:
            add_quarantined(self._table, self._quarantine, behind, outcome.quarantined, sleep=self._sleep)
            self._added |= behind | dict(outcome.quarantined.ends if outcome.quarantined is not None else {})
        self._compared = True
        return outcome


def refuse_other_table(address: str, found: Snapshot | None) -> None:
    """Refuse to take another table for a quarantine, because a topic's name ends in `_quarantine`.

    Args:
        address: of the quarantine.
        found: the table at this address; None if there is none.

    Raises:
        TableError: the table has other columns, or a group has begun to write topics to it.
    """
    if found is None or ("error_class" in found.schema.names and not found.beginnings):
        return
    raise TableError(
        f"{address}: the bad records of {base_of(address)} belong here, but this is the table of another topic or "
        "query; nothing was changed. Rename one of the two tables, so that the name of one is not that of the other "
        "with _quarantine after it"
    )


def refuse_ahead(table: Table, quarantine: Table) -> Mapping[TopicPartition, int]:
    """Compare a table with its quarantine, before the first commit of a process and after an error.

    Returns:
        Positions of the table.

    Raises:
        TableError: the quarantine has records beyond the table's positions or is not a quarantine, or one of the
            two cannot be read.
    """
    # A rewind sets the table back before its quarantine. So the table is read before both: its next read notices a
    # rewind in between, after which the quarantine that was read is out of date.
    table.refresh()
    # The quarantine follows its table, so it is read first: the table must name all that the quarantine has.
    held = quarantine.refresh()
    refuse_other_table(quarantine.name, held)
    snapshot = table.newest()
    known = snapshot.positions if snapshot else {}
    for key, at in held.positions.items() if held else ():
        if at > known.get(key, 0):
            raise TableError(
                f"{quarantine.name}: it has records of {key.topic}/{key.partition} up to offset {at}, and "
                f"its table's position is {known.get(key, 0)}; nothing was written. Was the table restored, "
                f"deleted or copied without its quarantine? `azimuth rewind {table.name} --apply` takes out the "
                "records that the table has not reached"
            )
    return known


def add_quarantined(
    table: Table,
    quarantine: Table,
    named: Mapping[TopicPartition, int],
    own: Quarantined | None = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Add the rows that the table's commits name and the quarantine lacks, once, whatever other writers do.

    Args:
        table: the table, at its last refresh.
        quarantine: the table's quarantine.
        named: the table's next offset, by partition, after the newest commit that named bad rows of it.
        own: the rows that the caller's latest commit names, if there was one.
        sleep: waits between attempts, in seconds.

    Raises:
        LostRecordsError: rows that are named are gone.
        TableError: the quarantine refuses the rows; they stay named, and the next call adds them.
    """
    failed: list[TableError] = []
    for _ in range(ATTEMPTS):
        snapshot = _look(quarantine)
        missing = _missing(table, snapshot.positions, named, own)
        if not missing or swapped(quarantine, snapshot, _change(missing), failed, sleep=sleep):
            return
    raise TableError(
        f"{quarantine.name}: bad rows lost against other writers {ATTEMPTS} times in a row; they are added with the "
        "next batch. Fewer agents, or a longer trigger interval, make room"
    )


def add_those_left(table: Table, quarantine: Table, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Add all rows that the table's commits name, and give up those that are gone; no other writer may run.

    Raises:
        TableError: the quarantine refuses the rows, or another writer committed in between.
    """
    # Another rewind sets the table back before its quarantine. So the table is read before and after: the second time
    # notices such a rewind, after which the records that the table named are read again.
    table.refresh()
    quarantine.refresh()
    snapshot = table.refresh()
    if snapshot is None or not snapshot.quarantined:
        return
    try:
        add_quarantined(table, quarantine, snapshot.quarantined, sleep=sleep)
    except LostRecordsError as error:
        quarantine.swap(_look(quarantine), _change(error.left))


def has_lost(table: Table, quarantine: Table) -> bool:
    """Return whether the quarantine lacks bad records whose files are gone."""
    snapshot, held = table.refresh(), quarantine.refresh()
    try:
        table.named_quarantine(snapshot.quarantined if snapshot else (), held.positions if held else {})
    except LostRecordsError:
        return True
    return False


def _look(quarantine: Table) -> Snapshot:
    snapshot = quarantine.refresh()
    if snapshot is None:
        quarantine.create(SCHEMA)
        snapshot = quarantine.refresh() or quarantine.newest()
    refuse_other_table(quarantine.name, snapshot)
    if snapshot is None:
        raise TableError(
            f"{quarantine.name}: the quarantine was created and is gone again; is another program deleting it?"
        )
    return snapshot


def _missing(
    table: Table,
    held: Mapping[TopicPartition, int],
    named: Mapping[TopicPartition, int],
    own: Quarantined | None,
) -> list[Quarantined]:
    behind = [key for key, end in named.items() if held.get(key, 0) < end]
    found = list(table.named_quarantine(behind, held)) if behind else []
    # The table was refreshed before this writer's own commit, so its log may lack that one.
    if own is not None and any(held.get(key, 0) < end for key, end in own.ends.items()):
        found = [*(one for one in found if one.ends != own.ends), own]
    return found


def _change(missing: Sequence[Quarantined]) -> Change:
    ends: dict[TopicPartition, int] = {}
    for one in missing:
        ends |= one.ends  # oldest first, so the newest end remains
    files = [file for one in missing for file in one.files]
    note = {
        "kind": "quarantine",
        "rows": sum(file.rows for file in files),
        "bytes": sum(file.size_bytes for file in files),
    }
    return Change(files=files, positions=ends, beginnings={}, schema=SCHEMA, note=note)
