"""Opens a Delta table at its newest version, or says that the newest version cannot be seen.

delta-rs takes the newest version from a listing of the log, and some caches and stores list a new object late. A
command would then look at an older version, and report that nothing is to be done; a writer would take the records of
the last commit for lost ones. A commit is there before it is listed, so a read of the next version shows that the
listing is behind.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from spark_sink.errors import TableError
from spark_sink.lake.delta_log_files import log_errors, read_commit
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import filesystem, is_delta_table, repeated_if_cut

_Found = TypeVar("_Found")
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

    def look_again() -> DeltaTable:
        repeated_if_cut(handle.update_incremental)
        return handle

    return wait_for_listing(uri, filesystem(uri, storage), handle, look_again, lambda found: int(found.version()))


def wait_for_listing(
    uri: str,
    files: pafs.FileSystem,
    found: _Found,
    look_again: Callable[[], _Found],
    version_of: Callable[[_Found], int],
) -> _Found:
    """Look again until the newest version is seen, and return it; wait some seconds for a listing that is behind.

    Args:
        uri: address of the table.
        files: its folder.
        found: what the first look has seen.
        look_again: lists the log again.
        version_of: returns the newest version that a look has seen; -1 for none.

    Raises:
        TableError: the listing stays behind, or the log cannot be read.
    """
    deadline = time.monotonic() + PATIENCE_S
    while _is_there(uri, files, version_of(found) + 1):
        before = version_of(found)
        found = look_again()
        seen = version_of(found)
        if time.monotonic() < deadline:
            if seen == before:
                time.sleep(_PAUSE_S)
        elif seen == before:
            raise TableError(
                f"{uri}: the store lists {f'versions up to {before}' if before >= 0 else 'no version'}, and version "
                f"{before + 1} is there, so the newest rows cannot be seen and nothing was done; does a cache or a "
                "proxy list new objects late? Try again"
            )
        else:  # the table is a busy one: others commit faster than this looks
            break
    return found


def _is_there(uri: str, files: pafs.FileSystem, version: int) -> bool:
    with log_errors(uri):
        return read_commit(files, version) is not None
