"""Decides which part of a batch is still to be committed, from the table's own positions. Pure.

A batch has the rows `[begin, end)` of each partition; the table has a position (`cur`):

    cur is none         the group's first rows of this partition: commit, and store the first offset
    cur == begin        commit
    cur >= end          a replay, or another agent was faster: leave the rows out
    begin < cur < end   a partial replay: leave out the rows below cur
    cur < begin         a HOLE: rows are missing. Refuse the whole batch
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from assignors.hashing import hash64
from spark_sink.errors import HoleError, TableError
from spark_sink.lake.table_contract import DataFile, Span
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition

Trim = tuple[DataFile, Mapping[TopicPartition, int]]
"""A file, and the lowest offset to keep by partition."""


class Verdict(Enum):
    """The verdict on one partition of a batch."""

    BEGIN = "begin"
    COMMIT = "commit"
    TRIM = "trim"
    SKIP = "skip"
    HOLE = "hole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision on a batch, given the positions of the table.

    Attributes:
        verdicts: by partition.
        positions: the next offset to set, by partition.
        beginnings: first offset of the group, for partitions without a position.
        identities: the topic id of each name, as a number, for names without one in the table.
        keep: files to commit unchanged.
        trim: files to copy without the rows below the floor of their partition, with these floors.
        keep_bad: files of the quarantine to name unchanged.
        trim_bad: files of the quarantine to copy, as in `trim`.
    """

    verdicts: Mapping[TopicPartition, Verdict] = field(default_factory=dict)
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    beginnings: Mapping[TopicPartition, int] = field(default_factory=dict)
    identities: Mapping[str, int] = field(default_factory=dict)
    keep: Sequence[DataFile] = ()
    trim: Sequence[Trim] = ()
    keep_bad: Sequence[DataFile] = ()
    trim_bad: Sequence[Trim] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.positions


def judge(cur: int | None, begin: int, end: int) -> Verdict:
    """Compare the table's position with the range of a batch.

    Args:
        cur: the next offset that the table expects; None if it does not know the partition.
        begin: first offset of the range.
        end: offset after the range. An empty range only announces that the member owns the partition.
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
    bad: Iterable[DataFile] = (),
    identities: Mapping[str, int] | None = None,
) -> Decision:
    """Decide which part of a batch is still to be committed.

    Args:
        positions: positions of the table, by partition.
        offset: the ranges of the batch.
        files: the batch's rows.
        bad: the batch's rows that could not be decoded.
        identities: the table's topic id of each name, as returned by `identity_number`, if stored.

    Raises:
        HoleError: the table's position is before the start of a range.
        TableError: a file has rows that are not in this batch, or the batch is from another topic of the same name.
    """
    named = _refuse_others(offset, identities or {})
    ranges = offset.ranges
    verdicts = {key: judge(positions.get(key), one.begin, one.end) for key, one in ranges.items()}
    _refuse_holes([one for key, one in ranges.items() if verdicts[key] is Verdict.HOLE], positions)
    floors = {key: max(one.begin, min(positions.get(key, one.begin), one.end)) for key, one in ranges.items()}
    keep, trim = _select(files, offset, floors)
    keep_bad, trim_bad = _select(bad, offset, floors)
    moving = {Verdict.BEGIN, Verdict.COMMIT, Verdict.TRIM}
    return Decision(
        verdicts=verdicts,
        positions={key: one.end for key, one in ranges.items() if verdicts[key] in moving},
        beginnings={key: one.begin for key, one in ranges.items() if verdicts[key] is Verdict.BEGIN},
        identities=named,
        keep=keep,
        trim=trim,
        keep_bad=keep_bad,
        trim_bad=trim_bad,
    )


def _select(
    files: Iterable[DataFile], offset: Offset, floors: Mapping[TopicPartition, int]
) -> tuple[list[DataFile], list[Trim]]:
    keep: list[DataFile] = []
    trim: list[Trim] = []
    for file in files:
        _refuse_strangers(file, offset)
        if all(span.first >= floors[key] for key, span in file.spans.items()):
            keep.append(file)
        elif any(span.last >= floors[key] for key, span in file.spans.items()):
            trim.append((file, {key: floors[key] for key in file.spans}))
    return [file for file in keep if file.rows], trim


def identity_number(identity: str) -> int:
    """Return `<cluster id>/<topic id>` as a number that a table's log can store."""
    return hash64(identity) >> 1


def _refuse_others(offset: Offset, known: Mapping[str, int]) -> dict[str, int]:
    """Refuse records of a recreated topic; return the identities that the table does not have yet.

    Its offsets restart at 0, so below the table's position its records look like a replay, and above it like the next
    records.
    """
    named = {topic: identity_number(one) for topic, one in offset.identities.items()}
    for topic, number in named.items():
        if known.get(topic, number) != number:
            raise TableError(
                f"{topic}: the table has records of an earlier topic of this name, which was deleted and recreated as "
                f"{offset.identities[topic]}; nothing of it was written. Use a new group and table for it"
            )
    return {topic: number for topic, number in named.items() if topic not in known}


def _refuse_holes(holes: Sequence[Range], positions: Mapping[TopicPartition, int]) -> None:
    if not holes:
        return
    first = holes[0]
    raise HoleError(
        f"{first.topic}/{first.partition}: the batch begins at offset {first.begin}, but the table's position is "
        f"{positions[first.key]}; committing would lose {first.begin - positions[first.key]} offsets"
        + (f" (and so for {len(holes) - 1} more partitions)" if len(holes) > 1 else "")
        + ". Begin where the table ends, with the option 'positions': a stream with a new checkpoint, because this one "
        "would only repeat the batch; a batch write by spark_sink.fixed_offsets"
    )


def _refuse_strangers(file: DataFile, offset: Offset) -> None:
    for key, span in file.spans.items():
        one = offset.ranges.get(key)
        if one is None or not _within(span, one):
            raise TableError(
                f"{key.topic}/{key.partition}: rows {span.first} to {span.last} are not of this batch, whose range is "
                + ("none" if one is None else f"[{one.begin}, {one.end})")
                + "; do two queries share one checkpoint, or does the query change topic, partition or offset? The "
                "read and the batch write of one job need the options of one call of spark_sink.fixed_offsets"
            )


def _within(span: Span, one: Range) -> bool:
    return one.begin <= span.first and span.last < one.end
