"""Files that VACUUM has removed: they are not committed, because no reader could open a table that lists them.

VACUUM removes files that no commit names and that are older than its retention. A process that was paused for longer
between the writing of its files and their commit would name files that are gone. A reader that takes longer finds the
files of its version gone.
"""

import functools
import re
import time
from collections.abc import Callable, Mapping

from pyarrow import fs as pa_fs

from spark_sink.errors import TableError
from spark_sink.lake.parquet_landing import storage_errors
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import filesystem

# A question to the storage for each file of each batch would be slow, and commits hardly ever come later than this.
_ASKED_AFTER_MS = 600_000
# As each store says it. "Magic bytes not found" is Arrow's sentence about a file that is there and damaged.
_GONE = re.compile(r"(?<!magic bytes )not found|no such (file|key)|does not exist|nosuchkey", re.IGNORECASE)


def refuse_gone(uri: str, written: Mapping[str, int], storage: Storage | None = None) -> None:
    """Refuse files that are gone; the storage is asked only for files that were written more than 10 minutes ago.

    Args:
        uri: address of the table.
        written: when each file was written, ms since 1970, by path; 0 if it is unknown.
        storage: options of the object store.

    Raises:
        TableError: a file is gone, or the storage does not answer.
    """
    opened = functools.cache(lambda: filesystem(uri, storage))  # on the first question: most commits ask none

    def exists(path: str) -> bool:
        info = opened().get_file_info(path)
        return bool(info.type != pa_fs.FileType.NotFound)

    refuse_missing(uri, written, exists)


def refuse_missing(name: str, written: Mapping[str, int], exists: Callable[[str], bool]) -> None:
    """Do the same for files of a storage that `exists` asks."""
    before_ms = time.time() * 1000 - _ASKED_AFTER_MS
    with storage_errors(name):
        gone = [path for path, at_ms in written.items() if 0 < at_ms < before_ms and not exists(path)]
    if gone:
        raise TableError(
            f"{name}: {len(gone)} of the files to commit are gone, such as {min(gone)}, so nothing was committed. They "
            "were written more than 10 minutes ago: did VACUUM, with a shorter retention, run while this process was "
            "paused? The records are read again from Kafka; if this repeats, run VACUUM with a longer retention"
        )


def with_way_out(text: str) -> str:
    """Return a library's message about rows that it cannot read; if a file is gone, add how to continue."""
    if not _GONE.search(text):
        return text
    return (
        f"{text}. If VACUUM or another program removed the file while the table was being read, read it again, and run "
        "that program with a longer retention"
    )
