"""Compare and swap: which part of a batch is still to be committed, decided from the table's own positions.

A batch says of each partition "these rows are `[begin, end)`"; the table says how far it has come (`cur`):

    cur is none         the group's first rows of this partition: commit, and remember where it began
    cur == begin        commit
    cur >= end          a replay, or another agent was faster: leave the rows out
    begin < cur < end   partly so: leave out the rows below cur
    cur < begin         a HOLE: someone's rows are missing. Refuse the whole batch

Everything here is a function of values except `commit`, which repeats look, decide, swap until nobody interferes, and
notes in the table's history what it did and how old the newest record was.
"""

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum

import pyarrow as pa

from assignors._hash import hash64
from spark_sink._errors import ConflictError, HoleError, SchemaError, TableError
from spark_sink._offsets import Offset, Range, TopicPartition
from spark_sink._table import Change, DataFile, Snapshot, Span, Table

ATTEMPTS = 100
FAILURES = 3
_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.5


class Verdict(Enum):
    """What becomes of one partition of a batch."""

    BEGIN = "begin"
    COMMIT = "commit"
    TRIM = "trim"
    SKIP = "skip"
    HOLE = "hole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one micro-batch wants to add to one table.

    Attributes:
        offset: the ranges that were read, of the topics that go to this table.
        files: what was written; together they hold the rows of these ranges and no others.
        schema: the columns of the files.
        number: Spark's batch id, for the history.
        agent: who commits, for the history.
        gaps: the table holds only some of the records (a quarantine), so a position behind the range is no hole.
    """

    offset: Offset
    files: Sequence[DataFile]
    schema: pa.Schema
    number: int = -1
    agent: str = ""
    gaps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do with a batch, given the positions of the table.

    Attributes:
        verdicts: by partition.
        positions: the next offset to set, by partition.
        beginnings: where the group begins, for partitions without a position.
        identities: which topic each name means, for names of which the table does not know it.
        keep: files that go in as they are.
        trim: files to copy without the rows below the floor of their partition, with these floors.
    """

    verdicts: Mapping[TopicPartition, Verdict] = field(default_factory=dict)
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    beginnings: Mapping[TopicPartition, int] = field(default_factory=dict)
    identities: Mapping[str, int] = field(default_factory=dict)
    keep: Sequence[DataFile] = ()
    trim: Sequence[tuple[DataFile, Mapping[TopicPartition, int]]] = ()

    @property
    def empty(self) -> bool:
        """Nothing is left to commit."""
        return not self.positions


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a commit did.

    Attributes:
        rows: rows that went into the table.
        rows_left_out: rows that were in the table already.
        conflicts: how often another writer was faster.
        verdicts: by partition.
    """

    rows: int = 0
    rows_left_out: int = 0
    conflicts: int = 0
    verdicts: Mapping[TopicPartition, Verdict] = field(default_factory=dict)


def judge(cur: int | None, begin: int, end: int) -> Verdict:
    """Compare the table's position with the range of a batch.

    Args:
        cur: the next offset that the table waits for; None where it knows nothing of the partition.
        begin: first offset of the range.
        end: offset after the range. An empty range only announces that the partition is held.
    """
    if cur is None:
        return Verdict.BEGIN
    if cur >= end:
        return Verdict.SKIP
    if cur < begin:
        return Verdict.SKIP if begin == end else Verdict.HOLE
    return Verdict.COMMIT if cur == begin else Verdict.TRIM


def decide(
    positions: Mapping[TopicPartition, int],
    offset: Offset,
    files: Iterable[DataFile],
    *,
    gaps: bool = False,
    identities: Mapping[str, int] | None = None,
) -> Decision:
    """Decide what of a batch is still to be committed.

    Args:
        positions: of the table, by partition.
        offset: the ranges of the batch.
        files: the batch's rows.
        gaps: a position behind the range is no hole.
        identities: which topic each name means to the table, as `identity_number` makes it, where it knows.

    Raises:
        HoleError: the table stands before the begin of a range.
        TableError: a file holds rows that are not of this batch, or the batch is of another topic of the same name.
    """
    named = _refuse_others(offset, identities or {})
    verdicts = {one.key: judge(positions.get(one.key), one.begin, one.end) for one in offset}
    holes = [one for one in offset if verdicts[one.key] is Verdict.HOLE]
    if gaps:
        verdicts |= {one.key: Verdict.COMMIT for one in holes}
    else:
        _refuse_holes(holes, positions)
    floors = {one.key: max(one.begin, min(positions.get(one.key, one.begin), one.end)) for one in offset}
    keep: list[DataFile] = []
    trim: list[tuple[DataFile, Mapping[TopicPartition, int]]] = []
    for file in files:
        _refuse_strangers(file, offset)
        if all(span.first >= floors[key] for key, span in file.spans.items()):
            keep.append(file)
        elif any(span.last >= floors[key] for key, span in file.spans.items()):
            trim.append((file, {key: floors[key] for key in file.spans}))
    moving = {Verdict.BEGIN, Verdict.COMMIT, Verdict.TRIM}
    return Decision(
        verdicts=verdicts,
        positions={one.key: one.end for one in offset if verdicts[one.key] in moving},
        beginnings={one.key: one.begin for one in offset if verdicts[one.key] is Verdict.BEGIN},
        identities=named,
        keep=[file for file in keep if file.rows],
        trim=trim,
    )


def commit(table: Table, batch: Batch, *, sleep: Callable[[float], None] = time.sleep) -> Outcome:
    """Bring a batch into a table, exactly once whoever else tries to.

    Args:
        table: where to.
        batch: what.
        sleep: waits between attempts, seconds.

    Raises:
        HoleError: rows before this batch are missing.
        TableError: the table cannot take the batch, or was never free for it.
    """
    written = sum(file.rows for file in batch.files)
    trimmed: dict[tuple[str, tuple[int, ...]], DataFile | None] = {}
    failures = 0
    for attempt in range(ATTEMPTS):
        snapshot = _look(table, batch)
        decision = decide(
            snapshot.positions, batch.offset, batch.files, gaps=batch.gaps, identities=snapshot.identities
        )
        files = [*decision.keep, *_trim(table, decision, trimmed)]
        rows = sum(file.rows for file in files)
        if not decision.empty:
            try:
                table.swap(snapshot, _change(decision, files, batch, attempt))
            except SchemaError:
                raise
            except TableError as error:
                # A failure may hide a commit that went through: the next look tells.
                failures += not isinstance(error, ConflictError)
                if failures >= FAILURES:
                    raise
                sleep(random.uniform(0, min(_LONGEST_PAUSE_S, _PAUSE_S * 2**attempt)))  # noqa: S311 -- spreads writers
                continue
        return Outcome(rows=rows, rows_left_out=written - rows, conflicts=attempt, verdicts=decision.verdicts)
    raise TableError(
        f"{table.name}: batch {batch.number} lost against other writers {ATTEMPTS} times in a row; nothing of it was "
        "committed. Fewer agents, or a longer trigger interval, make room"
    )


def _look(table: Table, batch: Batch) -> Snapshot:
    snapshot = table.refresh()
    if snapshot is None:
        table.create(batch.schema)
        snapshot = table.refresh()
    if snapshot is None:
        raise TableError(f"{table.name}: the table was made and is gone again; does someone else delete it?")
    return snapshot


def _trim(
    table: Table, decision: Decision, done: dict[tuple[str, tuple[int, ...]], DataFile | None]
) -> Iterable[DataFile]:
    for file, floors in decision.trim:
        key = file.path, tuple(floors[one] for one in sorted(floors))
        if key not in done:
            done[key] = table.filtered(file, floors)
        copy = done[key]
        if copy is not None:
            yield copy


def _change(decision: Decision, files: Sequence[DataFile], batch: Batch, conflicts: int) -> Change:
    rows = sum(file.rows for file in files)
    newest = max((stamp for file in files if (stamp := newest_timestamp(file.stats)) is not None), default=None)
    note = {
        "agent": batch.agent,
        "batch": str(batch.number),
        "kind": "quarantine" if batch.gaps else "table",
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
    )


def identity_number(identity: str) -> int:
    """`<cluster id>/<topic id>` as a number that a table's log can keep."""
    return hash64(identity) >> 1


def newest_timestamp(stats: str) -> datetime | None:
    """The timestamp of the newest record of a file, from its statistics; None where they have none."""
    found = json.loads(stats).get("maxValues", {}).get("timestamp")
    return None if found is None else datetime.fromisoformat(found)


def _refuse_others(offset: Offset, known: Mapping[str, int]) -> dict[str, int]:
    """Refuse records of a topic that was made anew; returns the identities that the table does not know yet.

    Its offsets begin at 0 again, so below the table's position its records look like a replay, and above it like
    the next ones.
    """
    named = {topic: identity_number(one) for topic, one in offset.identities.items()}
    for topic, number in named.items():
        if known.get(topic, number) != number:
            raise TableError(
                f"{topic}: the table has records of an earlier topic of this name, which was deleted and made anew as "
                f"{offset.identities[topic]}; nothing of it was written. Use a new group and table for it"
            )
    return {topic: number for topic, number in named.items() if topic not in known}


def _refuse_holes(holes: Sequence[Range], positions: Mapping[TopicPartition, int]) -> None:
    if not holes:
        return
    first = holes[0]
    raise HoleError(
        f"{first.topic}/{first.partition}: the batch begins at offset {first.begin}, but the table has come to "
        f"{positions[first.key]} only; committing would lose {first.begin - positions[first.key]} offsets"
        + (f" (and so for {len(holes) - 1} more partitions)" if len(holes) > 1 else "")
        + ". Start again with a new checkpoint: it begins where the table ends (option 'positions'), and this one "
        "would only repeat the batch"
    )


def _refuse_strangers(file: DataFile, offset: Offset) -> None:
    for key, span in file.spans.items():
        one = offset.ranges.get(key)
        if one is None or not _within(span, one):
            raise TableError(
                f"{key.topic}/{key.partition}: rows {span.first} to {span.last} are not of this batch, whose range is "
                + ("none" if one is None else f"[{one.begin}, {one.end})")
                + "; do two queries share one checkpoint, or does the query change topic, partition or offset?"
            )


def _within(span: Span, one: Range) -> bool:
    return one.begin <= span.first and span.last < one.end
