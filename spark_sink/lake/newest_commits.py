"""Reads application transactions from the newest commits of Delta tables, without reading their logs as a whole."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial

import pyarrow.fs as pa_fs

from spark_sink.errors import TableError, plain
from spark_sink.lake.delta_log_files import UNREADABLE, LogListing, commit_path, list_log, transactions_of
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import filesystem, read_text

_FEW = 8  # commits; a batch of a quiet table has few of its partitions


def newest_transactions(
    log: LogListing, files: pa_fs.FileSystem, wanted: AbstractSet[str], table: str = ""
) -> Mapping[str, int] | None:
    """Return the versions of some application ids from the newest commits.

    Args:
        log: of the table.
        files: the storage.
        wanted: the application ids.
        table: path of the table in the storage.

    Returns:
        Versions of these and of others; None if the newest few commits do not have all of these.
    """
    found: dict[str, int] = {}
    for version in range(log.newest, max(-1, log.newest - _FEW), -1):
        text = read_text(files, commit_path(version, table)) if version in log.commits else None
        if text is None:
            return None
        found = {**dict(transactions_of(text)), **found}
        if wanted <= found.keys():
            return found
    return None


def newest_of_folder(
    folder: str, wanted: Mapping[str, AbstractSet[str]], storage: Storage, threads: int
) -> dict[str, Mapping[str, int]]:
    """Return what `newest_transactions` finds in several tables of one folder of an object store.

    Usually the store gets two requests for each table, a listing and a read: the listing has the size of the commit,
    for which delta-rs sends a request otherwise, one table at a time. All tables share two clients, each of which takes
    10 to 30 ms of processor time to make.

    Args:
        folder: address of the folder.
        wanted: application ids, by name of the table.
        storage: options of the object store.
        threads: how many tables are read at once.

    Returns:
        Versions by name of the table; no versions if there is no table. Tables whose newest commits do not have all of
        the ids are left out.

    Raises:
        TableError: a log cannot be read.
    """
    files = _kept(folder, tuple(sorted(storage.items())))
    with ThreadPoolExecutor(threads, thread_name_prefix="newest-commits") as pool, _errors(folder):
        logs = dict(zip(wanted, pool.map(partial(list_log, files), wanted), strict=True))
        sized = filesystem(folder, storage, sizes=_sizes(logs))

        def read(name: str) -> Mapping[str, int] | None:
            return newest_transactions(logs[name], sized, wanted[name], name) if logs[name].newest >= 0 else {}

        found = zip(wanted, pool.map(read, wanted), strict=True)
        return {name: transactions for name, transactions in found if transactions is not None}


@cache
def _kept(folder: str, storage: tuple[tuple[str, str], ...]) -> pa_fs.FileSystem:
    return filesystem(folder, dict(storage))


def _sizes(logs: Mapping[str, LogListing]) -> dict[str, int]:
    """Return the bytes of the newest few commits by path."""
    return {
        commit_path(version, name): size
        for name, log in logs.items()
        for version, size in log.commits.items()
        if version > log.newest - _FEW
    }


@contextmanager
def _errors(folder: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise TableError(f"{folder}: the logs of its tables cannot be read: {plain(error)}") from error
