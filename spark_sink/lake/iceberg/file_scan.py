"""Reads data files with pyiceberg, without its change of nulls; this module imports pyiceberg, which loads slowly.

pyiceberg 0.12 returns an empty list for a null list of structs, and an empty map for a null map of structs: it builds
both from their offsets alone. A compaction would write them so.

It also reads its files whole before it returns a row: of a file of 1.5 million rows the first came after 0.5 s. Of a
file that is read as its rows are taken, pyarrow still decodes the next 16 row groups at once; with 2 the first row
comes in half of the time, and all rows in the same time.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io import pyarrow as arrow_files
from pyiceberg.io.pyarrow import ArrowProjectionVisitor, ArrowScan

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import ListType, MapType

_EVERY_ROW = AlwaysTrue()
_GROUPS_AHEAD: Final = 2


def file_scan(
    metadata: "TableMetadata",
    io: "FileIO",
    columns: "Schema",
    condition: BooleanExpression = _EVERY_ROW,
    *,
    case_sensitive: bool = True,
) -> ArrowScan:
    """Return pyiceberg's reader of data files, which keeps their values, and reads a single file as rows are taken.

    Args:
        metadata: of the table.
        io: reads the files.
        columns: to read.
        condition: of the rows, bound to the table's columns.
        case_sensitive: whether names of columns are.
    """
    # The reader takes neither a visitor nor arguments of the scanner.
    vars(arrow_files).update(ArrowProjectionVisitor=_NullsKept, ds=_DATASETS)
    return _FileScan(metadata, io, columns, condition, case_sensitive)


class _FewGroupsAhead:
    from_fragment = staticmethod(partial(pads.Scanner.from_fragment, batch_readahead=_GROUPS_AHEAD))


_DATASETS: Final = SimpleNamespace(**{**vars(pads), "Scanner": _FewGroupsAhead})


class _FileScan(ArrowScan):
    def to_record_batches(self, tasks: "Iterable[FileScanTask]") -> Iterator[pa.RecordBatch]:
        files = list(tasks)
        if len(files) != 1:
            return super().to_record_batches(files)
        deletes = arrow_files._read_all_delete_files(self._io, files)  # noqa: SLF001 -- as the overridden method
        return self._record_batches_from_scan_tasks_and_deletes(files, deletes)


class _NullsKept(ArrowProjectionVisitor):
    def list(self, list_type: "ListType", list_array: pa.Array | None, value_array: pa.Array | None) -> pa.Array | None:
        return _with_nulls_of(list_array, super().list(list_type, list_array, value_array))

    def map(
        self,
        map_type: "MapType",
        map_array: pa.Array | None,
        key_result: pa.Array | None,
        value_result: pa.Array | None,
    ) -> pa.Array | None:
        return _with_nulls_of(map_array, super().map(map_type, map_array, key_result, value_result))


def _with_nulls_of(array: pa.Array | None, found: pa.Array | None) -> pa.Array | None:
    if array is None or found is None or array.null_count == found.null_count:
        return found
    return pc.if_else(array.is_valid(), found, pa.scalar(None, found.type))
