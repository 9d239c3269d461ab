"""Finds rows that are in a table twice, by the columns that identify a record, and confirms them by all others.

The first file with an offset keeps it. A second row is removed only if every column has the same value, because a
rewrite of files cannot create rows that differ.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_sink.errors import TableError
from spark_sink.lake.holes_and_doubles import Run, Runs, scan
from spark_sink.lake.table_contract import KEYS
from spark_sink.ranges.batch_offset import TopicPartition

_Indices = npt.NDArray[np.int64]


class StoredFile(Protocol):
    """A data file in a table. A table may list the same file several times."""

    @property
    def path(self) -> str:
        """Its path in the table's metadata."""

    @property
    def rows(self) -> int:
        """Rows in the file; 0 if the metadata does not have the number."""


class StoredFiles(Protocol):
    """The data files of one version of a table of either format."""

    @property
    def schema(self) -> pa.Schema:
        """The table's columns.

        Raises:
            TableError: rows of its files cannot be compared.
        """

    def files(self) -> Iterable[Any]:
        """Return the files, each a `StoredFile`."""

    def read(self, file: Any, names: Sequence[str]) -> pa.Table:  # noqa: ANN401 -- one of its own files
        """Read these columns of the rows of a file, in the order of the file and with the table's types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubleRows:
    """A file with rows that the table has again elsewhere.

    Attributes:
        file: the file in the table, as `StoredFiles.files` returned it.
        dropped: positions in the file of rows that equal another row.
        different: number of rows whose offset another row has with other values.
        repeated: number of rows that equal another row of the same file and stay: a query may have written them so.
        kept_in: paths of the files that keep the dropped rows.
    """

    file: Any
    dropped: Sequence[int]
    different: int
    repeated: int
    kept_in: Collection[str]


def find_doubles(table: StoredFiles, *, within_files: bool = False) -> Iterator[DoubleRows]:
    """Find rows that are in a table twice.

    Args:
        table: the files of the table.
        within_files: whether a row is dropped that equals another row of the same file.

    Raises:
        TableError: the rows have no identifying columns, or a file cannot be read.
    """
    schema = table.schema
    for name in KEYS:
        if name not in schema.names:
            raise TableError(
                f"the table has no column {name!r}, so nothing says which of its rows are there twice; nothing was "
                "changed. Restore the version before the doubling"
            )
    kept = _Kept()
    # A file with more rows is more likely to have all rows of another file, which is then removed as a whole.
    for file in sorted(table.files(), key=lambda one: (-one.rows, one.path)):
        found = scan(table.read(file, tuple(KEYS)).to_batches())
        owners = kept.owners(found)
        if owners or any(runs.doubles for runs in found.values()):
            yield _compare(table, file, owners, schema, within_files=within_files)
        kept.add(file, found)


class _Kept:
    """The offsets that each file keeps."""

    def __init__(self) -> None:
        self._files: list[StoredFile] = []
        self._runs: dict[TopicPartition, list[tuple[int, int, int]]] = {}  # first, end, number of the file; disjoint

    def owners(self, found: Mapping[TopicPartition, Runs]) -> list[StoredFile]:
        """Return the files that keep some of these offsets, in the order of addition."""
        numbers = {owner for key, runs in found.items() for run in runs for *_, owner in self._overlapping(key, run)}
        return [self._files[number] for number in sorted(numbers)]

    def add(self, file: StoredFile, found: Mapping[TopicPartition, Runs]) -> None:
        """Add the offsets of a file that no other file keeps yet."""
        for key, runs in found.items():
            held = self._runs.setdefault(key, [])
            for first, end in runs:
                at = first
                for low, high, _ in [*self._overlapping(key, (first, end)), (end, end, 0)]:
                    if at < low:
                        insort(held, (at, low, len(self._files)))
                    at = max(at, high)
        self._files.append(file)

    def _overlapping(self, key: TopicPartition, run: Run) -> list[tuple[int, int, int]]:
        held, (first, end) = self._runs.get(key, []), run
        left = max(0, bisect_left(held, (first,)) - 1)
        return [one for one in held[left : bisect_left(held, (end,))] if one[1] > first]


def _compare(
    table: StoredFiles, file: StoredFile, owners: Sequence[StoredFile], schema: pa.Schema, *, within_files: bool
) -> DoubleRows:
    """Compare the rows of a file with rows of the same offsets in the keeping files, or in the file itself."""
    places = [*owners, file]
    keys = [table.read(one, tuple(KEYS)) for one in places]
    again, first = _repeated(pa.concat_tables(keys))
    begins = np.cumsum([0, *(one.num_rows for one in keys)])
    own = again >= begins[-2]
    again, first = again[own] - begins[-2], first[own]
    rows = table.read(file, schema.names)
    dropped: list[int] = []
    different = repeated = 0
    kept_in: set[str] = set()
    for place, begin, end in zip(places, begins[:-1], begins[1:], strict=True):
        here = (first >= begin) & (first < end)
        if here.any():
            others = rows if place is file else table.read(place, schema.names)
            same = _same(rows.take(again[here]), others.take(first[here] - begin))
            different += int((~same).sum())
            if place is file and not within_files:
                repeated += int(same.sum())
            else:
                dropped += again[here][same].tolist()
                kept_in |= {place.path}
    return DoubleRows(file=file, dropped=sorted(dropped), different=different, repeated=repeated, kept_in=kept_in)


def _repeated(keys: pa.Table) -> tuple[_Indices, _Indices]:
    """Return positions of rows whose topic, partition and offset occurred before, and the first positions of these."""
    topics = keys.column("topic").combine_chunks().dictionary_encode()
    codes = (topics.combine_chunks() if isinstance(topics, pa.ChunkedArray) else topics).indices.to_numpy()
    partitions, offsets = (keys.column(name).to_numpy() for name in ("partition", "offset"))
    order = np.lexsort((offsets, partitions, codes))  # stable: equal rows keep their order
    new = np.ones(len(order), dtype=bool)
    for column in (codes, partitions, offsets):
        new[1:] &= column[order][1:] == column[order][:-1]
    new[1:] = ~new[1:]
    firsts = order[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    return order[~new].astype(np.int64), firsts[~new].astype(np.int64)


def _same(left: pa.Table, right: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which rows of two tables with the same columns are equal."""
    same = np.ones(left.num_rows, dtype=bool)
    for one, other in zip(left.columns, right.columns, strict=True):
        if not one.equals(other):  # two NaN are not equal either, although their texts are
            pairs = zip(one, other, strict=True)
            same &= np.fromiter((a.equals(b) or repr(a) == repr(b) for a, b in pairs), dtype=bool, count=len(same))
    return same
