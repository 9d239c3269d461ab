"""Opens a Delta table at its newest version, or says that the newest version cannot be seen.

delta-rs takes the newest version from a listing of the log, and some caches and stores list a new object late. A
command would then look at an older version, and report that nothing is to be done; a writer would take the records of
the last commit for lost ones. A commit is there before it is listed, so a read of the next version shows that the
listing is behind.
"""

import time
from collections.abc import Callable
from functools import partial

import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from spark_sink.errors import TableError
from spark_sink.lake.delta_log_files import log_errors, read_commit
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import filesystem, is_delta_table, repeated_if_cut

PATIENCE_S = 10.0
_PAUSE_S = 0.2


def newest_handle(
    uri: str,
    storage: Storage | None,
) -> DeltaTable:
    """Open a table at its newest version; wait some seconds for a listing that is behind.

    Args:
        uri: address of the table.
        storage: options of the object store.

    Raises:
        TableNotFoundError: there is no table.
        TableError: the listing stays behind, or the log cannot be read.
        DeltaError, OSError: the table cannot be read.
    """
    try:
        handle = repeated_if_cut(partial(DeltaTable, uri, storage_options=dict(storage or {}) or None))
    except TableNotFoundError:
        is_delta_table(uri, storage)  # raises an error if only the listing is empty
        raise
    wait_for_listing(uri, filesystem(uri, storage), handle.version, partial(repeated_if_cut, handle.update_incremental))
    return handle


def wait_for_listing(
    uri: str, files: pafs.FileSystem, seen: Callable[[], int], look_again: Callable[[], object]
) -> None:
    """Look again until the newest version is seen; wait some seconds for a listing that is behind.

    Args:
        uri: address of the table.
        files: its folder.
        seen: returns the newest version that was seen; -1 for none.
        look_again: lists the log again.

    Raises:
        TableError: the listing stays behind, or the log cannot be read.
    """
    deadline = time.monotonic() + PATIENCE_S
    while _is_there(uri, files, seen() + 1):
        before = seen()
        look_again()
        if time.monotonic() < deadline:
            if seen() == before:
                time.sleep(_PAUSE_S)
        elif seen() == before:
            raise TableError(
                f"{uri}: the store lists {f'versions up to {before}' if before >= 0 else 'no version'}, and version "
                f"{before + 1} is there, so the newest rows cannot be seen and nothing was done; does a cache or a "
                "proxy list new objects late? Try again"
            )
        else:  # the table is a busy one: others commit faster than this looks
            break


def _is_there(uri: str, files: pafs.FileSystem, version: int) -> bool:
    with log_errors(uri):
        return read_commit(files, version) is not None
