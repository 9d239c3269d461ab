"""Compare and swap: reads the table, decides, swaps, and retries until no other writer interferes.

The table's history stores a note about each commit, with the age of the newest record.
"""

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from spark_sink.errors import ConflictError, HoleError, SchemaError, TableError
from spark_sink.lake.table_contract import NOT_CREATED, Change, DataFile, Quarantined, Snapshot, Table
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.sink.batch_against_table import Decision, Trim, Verdict, decide
from spark_sink.sink.foreach_batch_write import BatchWrite, part_of
from spark_sink.sink.range_write import RangeWrite

ATTEMPTS = 100
_FAILURES = 3
_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.5
_FAILURE_PAUSE_S = 1.0  # the catalog or the store failed, and may have recovered after this time

Copies = dict[tuple[str, tuple[int, ...]], DataFile | None]
"""Copies of files without the rows that the table has, by path and lowest offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The part of one micro-batch for one table.

    Attributes:
        offset: the ranges of the topics that go to this table.
        files: the written files; together they have exactly the rows of these ranges.
        schema: the columns of the files.
        number: Spark's batch id, for the history.
        agent: the committing agent, for the history.
        bad: files of the table's quarantine, with the rows of these ranges that could not be decoded.
        write: this batch write, in `foreachBatch` or outside of a stream; None for the batch of a stream.
        by_topic: whether the history has the rows of each topic, too.
    """

    offset: Offset
    files: Sequence[DataFile]
    schema: pa.Schema
    number: int = -1
    agent: str = ""
    bad: Sequence[DataFile] = ()
    write: BatchWrite | RangeWrite | None = None
    by_topic: bool = False

    @property
    def name(self) -> str:
        """What messages call it."""
        return "this write" if isinstance(self.write, RangeWrite) else f"batch {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a commit.

    Attributes:
        rows: number of committed rows.
        files: the files with these rows.
        rows_left_out: number of rows that were already in the table.
        conflicts: number of times that another writer was faster.
        verdicts: by partition.
        quarantined: bad rows that this commit names and that must be added to the quarantine now; None for none.
        named: the table's next offset, by partition, after the newest earlier commit that named bad rows.
    """

    rows: int = 0
    files: Sequence[DataFile] = ()
    rows_left_out: int = 0
    conflicts: int = 0
    verdicts: Mapping[TopicPartition, Verdict] = field(default_factory=dict)
    quarantined: Quarantined | None = None
    named: Mapping[TopicPartition, int] = field(default_factory=dict)


def commit(
    table: Table, batch: Batch, quarantine: Table | None = None, *, sleep: Callable[[float], None] = time.sleep
) -> Outcome:
    """Commit a batch to a table, exactly once, whatever other writers do.

    Args:
        table: the table.
        batch: the batch.
        quarantine: the table's quarantine, if the batch has bad rows. This commit names them, and `quarantine_commit`
            adds them.
        sleep: waits between attempts, seconds.

    Raises:
        HoleError: rows before this batch are missing.
        TableError: the table refuses the batch, a part of it was written before, or other writers were always faster.
    """
    written = sum(file.rows for file in batch.files)
    rows_of_write = _rows_of_write(batch)
    good_copies: Copies = {}
    bad_copies: Copies = {}
    failed: list[TableError] = []
    for attempt in range(ATTEMPTS):
        snapshot, decision = _decided(table, batch)
        if isinstance(batch.write, RangeWrite):
            batch.write.refuse_lost(table.name, snapshot, (*batch.files, *batch.bad))
        if isinstance(batch.write, BatchWrite) and decision.empty:
            if batch.write.is_second(snapshot.writes, rows_of_write):
                if swapped(table, snapshot, _refused(batch.write, batch, snapshot), failed, sleep=sleep):
                    raise batch.write.second(table.name, rows_of_write)
                continue
            batch.write.refuse_rest(table.name, snapshot.writes, _part(batch), rows_of_write)
        files = [*decision.keep, *_copies(table, decision.trim, good_copies)]
        bad = [*decision.keep_bad, *(_copies(quarantine, decision.trim_bad, bad_copies) if quarantine else ())]
        quarantined = _quarantined(bad, decision, snapshot)
        rows = sum(file.rows for file in files)
        if not decision.empty or (rows_of_write and _is_unrecorded(batch, snapshot)):
            change = _change(decision, files, quarantined, batch, attempt)
            if not swapped(table, snapshot, change, failed, sleep=sleep):
                continue
        elif snapshot.version == NOT_CREATED:
            table.create(batch.schema)
        return Outcome(
            rows=rows,
            files=files,
            rows_left_out=written - rows,
            conflicts=attempt,
            verdicts=decision.verdicts,
            quarantined=None if decision.empty else quarantined,
            named=snapshot.quarantined,
        )
    table.newest()  # raises an error if the listing has stayed behind, as that looks like other writers
    raise TableError(
        f"{table.name}: {batch.name} lost against other writers {ATTEMPTS} times in a row; nothing of it was "
        "committed. Fewer agents, or a longer trigger interval, make room"
    )


def _decided(table: Table, batch: Batch) -> tuple[Snapshot, Decision]:
    """Compare the batch with the table, and before a refusal with the version that is the newest for sure.

    A store that lists late shows no hole as a rule, since the swap has a conflict. But a batch that begins where the
    last commit of another writer ends has one until that commit is listed. And a repeated batch write looks like a
    replay until the commit is listed that notes the refusal of its other part.

    Raises:
        HoleError, TableError: as `decide`.
    """
    snapshot = table.refresh() or table.begin(batch.schema)
    try:
        decision = _decision(snapshot, batch)
    except HoleError:
        newest = table.newest()
        if newest is None or newest.version == snapshot.version:
            raise
        return newest, _decision(newest, batch)
    if decision.empty and isinstance(batch.write, BatchWrite) and _rows_of_write(batch):
        newest = table.newest() or snapshot
        return newest, _decision(newest, batch)
    return snapshot, decision


def _decision(snapshot: Snapshot, batch: Batch) -> Decision:
    return decide(snapshot.positions, batch.offset, batch.files, bad=batch.bad, identities=snapshot.identities)


def swapped(
    table: Table, snapshot: Snapshot, change: Change, failed: list[TableError], *, sleep: Callable[[float], None]
) -> bool:
    """Swap once; return False, after a pause, if the table must be read again.

    Args:
        table: the table.
        snapshot: the table's state at the comparison.
        change: the change.
        failed: errors of earlier attempts; this attempt's error is added.
        sleep: waits, seconds.

    Raises:
        SchemaError: the columns do not fit, so a retry would not help.
        TableError: the storage refused too often.
    """
    try:
        table.swap(snapshot, change)
    except SchemaError:
        raise
    except TableError as error:
        # After a failure the commit may have succeeded: the next read shows it.
        failed.append(error)
        failures = sum(not isinstance(one, ConflictError) for one in failed)
        if failures >= _FAILURES:
            raise
        lost = isinstance(error, ConflictError)
        sleep(_pause_s(len(failed) - 1) if lost else _FAILURE_PAUSE_S * 2 ** (failures - 1))
        return False
    return True


def _is_unrecorded(batch: Batch, snapshot: Snapshot) -> bool:
    """Return whether a batch write has no number in the table, so that a second write would look like a replay.

    Without rows it needs none: a write that does not know its run would hide the number of the write with the rows.
    """
    return isinstance(batch.write, BatchWrite) and snapshot.writes.get(batch.write.query) != batch.write.number


def _rows_of_write(batch: Batch) -> int:
    return sum(file.rows for file in (*batch.files, *batch.bad))


def _part(batch: Batch) -> int:
    return part_of((*batch.files, *batch.bad))


def _refused(write: BatchWrite, batch: Batch, snapshot: Snapshot) -> Change:
    note = {"agent": batch.agent, "batch": str(batch.number), "kind": "refused", "rows": 0}
    return Change(files=(), positions={}, beginnings={}, schema=snapshot.schema, note=note, writes=write.refused())


def _pause_s(attempt: int) -> float:
    """Return the seconds to wait after a conflict; longer each time, and random to spread writers."""
    return random.uniform(0, min(_LONGEST_PAUSE_S, _PAUSE_S * 2**attempt))  # noqa: S311 -- spreads writers


def _copies(table: Table, trim: Sequence[Trim], done: Copies) -> Iterable[DataFile]:
    for file, floors in trim:
        key = file.path, tuple(floors[one] for one in sorted(floors))
        if key not in done:
            done[key] = table.filtered(file, floors)
        copy = done[key]
        if copy is not None:
            yield copy


def _quarantined(bad: Sequence[DataFile], decision: Decision, snapshot: Snapshot) -> Quarantined | None:
    keys = {key for file in bad for key in file.spans}
    if not keys:
        return None
    return Quarantined(
        files=bad,
        ends={key: decision.positions[key] for key in keys},
        before={key: snapshot.quarantined[key] for key in keys if key in snapshot.quarantined},
    )


def _change(
    decision: Decision, files: Sequence[DataFile], quarantined: Quarantined | None, batch: Batch, conflicts: int
) -> Change:
    rows = sum(file.rows for file in files)
    newest = max((stamp for file in files if (stamp := newest_timestamp(file.stats)) is not None), default=None)
    note: dict[str, object] = {
        "agent": batch.agent,
        "batch": str(batch.number),
        "kind": "table",
        "rows": rows,
        "rows_left_out": sum(file.rows for file in batch.files) - rows,
        "bytes": sum(file.size_bytes for file in files),
        "conflicts": conflicts,
        "age_s": None if newest is None else round((datetime.now(UTC) - newest).total_seconds(), 3),
    }
    if batch.by_topic:
        note |= {"topics": rows_by_topic(files, () if quarantined is None else quarantined.files)}
    return Change(
        files=files,
        positions=decision.positions,
        beginnings=decision.beginnings,
        schema=batch.schema,
        note=note,
        identities=decision.identities,
        quarantined=quarantined,
        writes=batch.write.noted(None if decision.empty else _part(batch)) if batch.write is not None else {},
    )


def rows_by_topic(files: Iterable[DataFile], bad: Iterable[DataFile]) -> dict[str, tuple[int, int, int]]:
    """Return the rows of each topic, those of them in the quarantine, and its part of the files' bytes by rows."""
    found: dict[str, tuple[int, int, int]] = {}
    for file, quarantined in (*((one, False) for one in files), *((one, True) for one in bad)):
        rows = max(file.rows, 1)
        for key, span in file.spans.items():
            before = found.get(key.topic, (0, 0, 0))
            more = span.rows, span.rows if quarantined else 0, file.size_bytes * span.rows // rows
            found[key.topic] = before[0] + more[0], before[1] + more[1], before[2] + more[2]
    return found


def newest_timestamp(stats: str) -> datetime | None:
    """Return the timestamp of a file's newest record, from its statistics; None if they have none."""
    found = json.loads(stats).get("maxValues", {}).get("timestamp")
    return None if found is None else datetime.fromisoformat(found)
