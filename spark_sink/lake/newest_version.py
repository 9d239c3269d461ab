"""Opens a Delta table at its newest version, or says that the newest version cannot be seen.

delta-rs takes the newest version from a listing of the log, and some caches and stores list a new object late. A
command would then look at an older version, and report that nothing is to be done. A commit is there before it is
listed, so a read of the next version shows that the listing is behind.
"""

import time
from collections.abc import Callable
from functools import partial

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
    files, deadline = filesystem(uri, storage), time.monotonic() + PATIENCE_S
    while _is_there(uri, partial(read_commit, files, handle.version() + 1)):
        seen = handle.version()
        repeated_if_cut(handle.update_incremental)
        if time.monotonic() < deadline:
            if handle.version() == seen:
                time.sleep(_PAUSE_S)
        elif handle.version() == seen:
            raise TableError(
                f"{uri}: the store lists versions up to {seen}, and version {seen + 1} is there, so the newest rows "
                "cannot be seen and nothing was done; does a cache or a proxy list new objects late? Run the command "
                "again"
            )
        else:  # the table is a busy one: others commit faster than this looks
            break
    return handle


def _is_there(uri: str, read: Callable[[], str | None]) -> bool:
    with log_errors(uri):
        return read() is not None
