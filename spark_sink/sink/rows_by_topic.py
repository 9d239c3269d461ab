"""Groups rows by topic in one pass, instead of filtering all rows for each topic or table."""

from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_sink.errors import TableError

_COMBINED_BYTES = 1 << 30  # more in one batch comes near 2 GiB, the most that a column of texts or binaries can have

_RUN = 32  # consecutive rows from which on copying whole runs is faster than row by row


class RowsByTopic:
    """Rows in groups, one for each topic.

    Args:
        rows: rows with the column `topic`.

    Attributes:
        topics: topics of the rows.

    Raises:
        TableError: a row has no topic.
    """

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows.combine_chunks() if rows.nbytes <= _COMBINED_BYTES else rows
        topics = self._rows.column("topic").combine_chunks().dictionary_encode()
        if topics.null_count:
            raise TableError("a row has no topic: it would look like a record written twice")
        self.topics: list[str] = topics.dictionary.to_pylist()
        numbers = np.frombuffer(topics.indices.buffers()[1], np.int32, len(topics)) if len(topics) else np.empty(0, int)
        ends = np.cumsum(np.bincount(numbers, minlength=len(self.topics)))
        # Records come in runs of one topic, which a stable sort merges in almost one pass.
        groups = np.split(np.argsort(numbers, kind="stable"), ends[:-1])
        self._groups = dict(zip(self.topics, groups, strict=False))  # without rows there is one empty group

    def of(self, topics: AbstractSet[str]) -> pa.Table:
        """Return a copy of the rows of these topics, in their order; without a copy if there are no other topics.

        Raises:
            TableError: the copy has another number of rows than the topics.
        """
        groups = [self._groups[one] for one in topics if one in self._groups]
        if len(groups) == len(self._groups):
            return self._rows
        if not groups:
            return self._rows.slice(0, 0)
        taken = self._take(groups[0] if len(groups) == 1 else np.sort(np.concatenate(groups)))
        if taken.num_rows != (wanted := sum(map(len, groups))):
            raise TableError(f"{wanted} rows are wanted of {sorted(topics)[:3]}, and {taken.num_rows} were copied")
        return taken

    def _take(self, rows: npt.NDArray[np.int64]) -> pa.Table:
        """Return a copy of the rows with these numbers, in ascending order, batch by batch."""
        taken, begin = [], 0
        for batch in self._rows.to_batches():
            first, last = np.searchsorted(rows, [begin, begin + batch.num_rows])
            if first < last:
                taken.append(_copied(batch, rows[first:last] - begin))
            begin += batch.num_rows
        return pa.Table.from_batches(taken, schema=self._rows.schema)


def _copied(batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Return a copy of the rows with these numbers, which ascend; it shares no memory with the batch."""
    ends = np.flatnonzero(np.diff(rows) != 1)
    if _RUN * len(ends) > len(rows):
        # Not pa.array: with a numpy array it imports pandas.
        within = pa.py_buffer(np.ascontiguousarray(rows))
        return batch.take(pa.Array.from_buffers(pa.int64(), len(rows), [None, within]))
    firsts, lasts = rows[[0, *(ends + 1)]].tolist(), rows[[*ends, -1]].tolist()
    runs = [batch.slice(first, last - first + 1) for first, last in zip(firsts, lasts, strict=True)]
    # One batch alone would not be copied.
    return pa.concat_batches([*runs, batch.slice(0, 0)])
