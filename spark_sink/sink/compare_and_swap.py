"""Compare and swap: look at the table, decide, swap, and repeat until no other writer interferes.

The table's history notes what was done, and how old the newest record was.
"""

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from spark_sink.errors import ConflictError, SchemaError, TableError
from spark_sink.lake.table_contract import Change, DataFile, Quarantined, Snapshot, Table
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.sink.batch_against_table import Decision, Trim, Verdict, decide

ATTEMPTS = 100
_FAILURES = 3
_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.5

Copies = dict[tuple[str, tuple[int, ...]], DataFile | None]
"""Copies of files without the rows that the table has, by path and lowest offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one micro-batch wants to add to one table.

    Attributes:
        offset: the ranges that were read, of the topics that go to this table.
        files: what was written; together they hold the rows of these ranges and no others.
        schema: the columns of the files.
        number: Spark's batch id, for the history.
        agent: who commits, for the history.
        bad: files of the table's quarantine: the rows of these ranges that could not be decoded.
    """

    offset: Offset
    files: Sequence[DataFile]
    schema: pa.Schema
    number: int = -1
    agent: str = ""
    bad: Sequence[DataFile] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a commit did.

    Attributes:
        rows: rows that went into the table.
        rows_left_out: rows that were in the table already.
        conflicts: how often another writer was faster.
        verdicts: by partition.
        quarantined: bad rows that this commit names, and that the quarantine has to add now; None for none.
        named: the table's next offset, by partition, after the newest commit before this one that named bad rows.
    """

    rows: int = 0
    rows_left_out: int = 0
    conflicts: int = 0
    verdicts: Mapping[TopicPartition, Verdict] = field(default_factory=dict)
    quarantined: Quarantined | None = None
    named: Mapping[TopicPartition, int] = field(default_factory=dict)


def commit(
    table: Table, batch: Batch, quarantine: Table | None = None, *, sleep: Callable[[float], None] = time.sleep
) -> Outcome:
    """Bring a batch into a table, exactly once whoever else tries to.

    Args:
        table: where to.
        batch: what.
        quarantine: the table's quarantine, where the batch has bad rows. This commit names them, and
            `quarantine_commit` adds them.
        sleep: waits between attempts, seconds.

    Raises:
        HoleError: rows before this batch are missing.
        TableError: the table cannot take the batch, or was never free for it.
    """
    written = sum(file.rows for file in batch.files)
    good_copies: Copies = {}
    bad_copies: Copies = {}
    failed: list[TableError] = []
    for attempt in range(ATTEMPTS):
        snapshot = _look(table, batch)
        decision = decide(snapshot.positions, batch.offset, batch.files, bad=batch.bad, identities=snapshot.identities)
        files = [*decision.keep, *_copies(table, decision.trim, good_copies)]
        bad = [*decision.keep_bad, *(_copies(quarantine, decision.trim_bad, bad_copies) if quarantine else ())]
        quarantined = _quarantined(bad, decision, snapshot)
        rows = sum(file.rows for file in files)
        if not decision.empty:
            change = _change(decision, files, quarantined, batch, attempt)
            if not swapped(table, snapshot, change, failed, sleep=sleep):
                continue
        return Outcome(
            rows=rows,
            rows_left_out=written - rows,
            conflicts=attempt,
            verdicts=decision.verdicts,
            quarantined=None if decision.empty else quarantined,
            named=snapshot.quarantined,
        )
    raise TableError(
        f"{table.name}: batch {batch.number} lost against other writers {ATTEMPTS} times in a row; nothing of it was "
        "committed. Fewer agents, or a longer trigger interval, make room"
    )


def swapped(
    table: Table, snapshot: Snapshot, change: Change, failed: list[TableError], *, sleep: Callable[[float], None]
) -> bool:
    """Swap once; False, after a pause, where the table must be looked at again.

    Args:
        table: where to.
        snapshot: as the table was looked at.
        change: what.
        failed: errors of earlier attempts; this attempt's error is added.
        sleep: waits, seconds.

    Raises:
        SchemaError: the columns do not fit, so another look would not help.
        TableError: the storage refused too often.
    """
    try:
        table.swap(snapshot, change)
    except SchemaError:
        raise
    except TableError as error:
        # A failure may hide a commit that went through: the next look shows it.
        failed.append(error)
        if sum(not isinstance(one, ConflictError) for one in failed) >= _FAILURES:
            raise
        sleep(_pause_s(len(failed) - 1))
        return False
    return True


def _look(table: Table, batch: Batch) -> Snapshot:
    snapshot = table.refresh()
    if snapshot is None:
        table.create(batch.schema)
        snapshot = table.refresh()
    if snapshot is None:
        raise TableError(f"{table.name}: the table was made and is gone again; does someone else delete it?")
    return snapshot


def _pause_s(attempt: int) -> float:
    """How long to wait after a conflict, in seconds; longer each time, and spread between writers."""
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
    note = {
        "agent": batch.agent,
        "batch": str(batch.number),
        "kind": "table",
        "rows": rows,
        "rows_left_out": sum(file.rows for file in batch.files) - rows,
        "bytes": sum(file.size_bytes for file in files),
        "conflicts": conflicts,
        "age_s": None if newest is None else round((datetime.now(UTC) - newest).total_seconds(), 3),
    }
    return Change(
        files=files,
        positions=decision.positions,
        beginnings=decision.beginnings,
        schema=batch.schema,
        note=note,
        identities=decision.identities,
        quarantined=quarantined,
    )


def newest_timestamp(stats: str) -> datetime | None:
    """The timestamp of the newest record of a file, from its statistics; None where they have none."""
    found = json.loads(stats).get("maxValues", {}).get("timestamp")
    return None if found is None else datetime.fromisoformat(found)
