"""The offsets of rows: those of each partition in some rows, and the rows at or above an offset of their partition.

Offsets are found by runs, as a task reads each partition in long runs.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.lake.table_contract import Span
from spark_sink.ranges.batch_offset import TopicPartition

_COLUMNS = ["topic", "partition", "offset"]
_RUN = 16  # rows of a run from which on a Python step for each run is cheap


def spans_of(rows: pa.Table) -> dict[TopicPartition, Span]:
    """Return the offsets of each partition that are in these rows."""
    found: dict[TopicPartition, Span] = {}
    for batch in rows.select(_COLUMNS).to_batches():
        if batch.num_rows:
            merge_spans(found, _spans_of_batch(batch))
    return found


def merge_spans(into: dict[TopicPartition, Span], more: Mapping[TopicPartition, Span]) -> None:
    """Add the spans of more rows of the same file."""
    for key, span in more.items():
        old = into.get(key)
        into[key] = (
            span if old is None else Span(min(old.first, span.first), max(old.last, span.last), old.rows + span.rows)
        )


def _spans_of_batch(batch: pa.RecordBatch) -> dict[TopicPartition, Span]:
    topics = batch.column("topic").dictionary_encode()
    numbers = _numbers(topics.indices, np.int32)
    partitions, offsets = _numbers(batch.column("partition"), np.int32), _numbers(batch.column("offset"), np.int64)
    changes = (numbers[1:] != numbers[:-1]) | (partitions[1:] != partitions[:-1])
    firsts = np.concatenate([[0], np.flatnonzero(changes) + 1])
    if _RUN * len(firsts) > _RUN * _RUN + batch.num_rows:
        return dict(_grouped(batch))
    lows, highs = np.minimum.reduceat(offsets, firsts), np.maximum.reduceat(offsets, firsts)
    counts = np.diff([*firsts, batch.num_rows])
    names = topics.dictionary.to_pylist()
    found: dict[TopicPartition, Span] = {}
    for number, partition, *span in zip(
        numbers[firsts].tolist(),
        partitions[firsts].tolist(),
        lows.tolist(),
        highs.tolist(),
        counts.tolist(),
        strict=True,
    ):
        merge_spans(found, {TopicPartition(names[number], partition): Span(*span)})
    return found


def _grouped(batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, Span]]:
    """Find the same in rows that alternate between partitions."""
    bounds = [("offset", "min"), ("offset", "max"), ("offset", "count")]
    # Without threads: they cost half a millisecond, and save nothing with few partitions.
    found = pa.Table.from_batches([batch]).group_by(["topic", "partition"], use_threads=False).aggregate(bounds)
    columns = (
        found.column(name).to_pylist() for name in ("topic", "partition", "offset_min", "offset_max", "offset_count")
    )
    for topic, number, *span in zip(*columns, strict=True):
        yield TopicPartition(topic, number), Span(*span)


def _numbers(column: pa.Array, kind: type[np.integer]) -> npt.NDArray[np.integer]:
    # Not to_numpy, which may import pandas.
    return np.frombuffer(column.buffers()[1], kind, len(column), column.offset * np.dtype(kind).itemsize)


def above(rows: pa.Table, floors: Mapping[TopicPartition, int]) -> pa.ChunkedArray:
    """Return a mask of the rows at or above the floor of their partition; rows of other partitions are left out."""
    mask = None
    for key, floor in floors.items():
        same = pc.and_(pc.equal(rows.column("topic"), key.topic), pc.equal(rows.column("partition"), key.partition))
        hit = pc.and_(same, pc.greater_equal(rows.column("offset"), floor))
        mask = hit if mask is None else pc.or_(mask, hit)
    return mask
