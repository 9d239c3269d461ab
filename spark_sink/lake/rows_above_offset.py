"""Selects the rows of a file at or above an offset of their partition."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.ranges.batch_offset import TopicPartition


def above(rows: pa.Table, floors: Mapping[TopicPartition, int]) -> pa.ChunkedArray:
    """Return a mask of the rows at or above the floor of their partition; rows of other partitions are left out."""
    mask = None
    for key, floor in floors.items():
        same = pc.and_(pc.equal(rows.column("topic"), key.topic), pc.equal(rows.column("partition"), key.partition))
        hit = pc.and_(same, pc.greater_equal(rows.column("offset"), floor))
        mask = hit if mask is None else pc.or_(mask, hit)
    return mask
