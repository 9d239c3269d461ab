"""Bytes of records as Kafka has them, by partition."""

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.ranges.batch_offset import TopicPartition


def record_bytes(rows: pa.Table) -> dict[TopicPartition, int]:
    """Return the bytes of keys and values, uncompressed and without headers, by partition.

    Args:
        rows: records in the columns of the raw format.
    """
    sizes = pc.add(_lengths(rows.column("key")), _lengths(rows.column("value")))
    columns = [rows.column("topic"), rows.column("partition"), sizes]
    # Without threads: few groups, and the threads of Arrow's pool are for the files.
    found = (
        pa.table(columns, names=["topic", "partition", "bytes"])
        .group_by(["topic", "partition"], use_threads=False)
        .aggregate([("bytes", "sum")])
    )
    names = ("topic", "partition", "bytes_sum")
    return {
        TopicPartition(topic, number): size
        for topic, number, size in zip(*(found.column(name).to_pylist() for name in names), strict=True)
    }


def _lengths(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.cast(pc.binary_length(column), pa.int64()), 0)
