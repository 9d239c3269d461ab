"""Reads application transactions from the newest commits of Delta tables, without reading their logs as a whole."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pyarrow.fs as pa_fs

from spark_sink.lake.delta_log_files import (
    LogListing,
    commit_path,
    list_log,
    log_errors,
    read_commit,
    transactions_of,
)
from spark_sink.lake.table_addresses import Storage, local_path
from spark_sink.lake.table_storage import filesystem

_FEW = 8  # commits; a batch of a quiet table has few of its partitions
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


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
        text = read_commit(files, version, table) if version in log.commits else None
        if text is None:
            return None
        found = {**dict(transactions_of(text)), **found}
        if wanted <= found.keys():
            return found
    return None


def newest_of_tables(
    wanted: Mapping[str, AbstractSet[str]], storage: Storage, threads: int
) -> dict[str, Mapping[str, int]]:
    """Return what `newest_transactions` finds in each of some tables.

    Usually an object store gets two requests for each table, a listing and a read: the listing has the size of the
    commit, for which delta-rs sends a request otherwise, one table at a time. The tables of a folder share two clients,
    each of which takes 10 to 30 ms of processor time to make.

    Args:
        wanted: application ids by address of the table.
        storage: options of the object store.
        threads: how many tables are read at once.

    Returns:
        Versions by address; no versions if there is no table. Tables whose newest commits do not have all of the ids
        are left out.

    Raises:
        TableError: a log cannot be read.
    """
    places = {address: _place(address) for address in wanted}
    options = tuple(sorted(storage.items()))
    files = {root: _kept(root, options) for root, _ in places.values()}  # here, else each thread would make its own

    def listed(address: str) -> LogListing:
        root, table = places[address]
        with log_errors(address):
            return list_log(files[root], table)

    def read(address: str) -> Mapping[str, int] | None:
        root, table = places[address]
        log = logs[address]
        with log_errors(address):
            return newest_transactions(log, sized[root], wanted[address], table) if log.newest >= 0 else {}

    with ThreadPoolExecutor(max(1, min(threads, len(wanted))), thread_name_prefix="newest-commits") as pool:
        # One table needs no thread, and schedules of tests follow the caller's thread only.
        each = pool.map if len(wanted) > 1 else map
        logs = dict(zip(wanted, each(listed, wanted), strict=True))
        sizes: dict[str, dict[str, int]] = {}
        for address, (root, table) in places.items():
            sizes.setdefault(root, {}).update(_sizes(logs[address], table))
        sized = {root: filesystem(root, storage, sizes=known) for root, known in sizes.items()}
        found = zip(wanted, each(read, wanted), strict=True)
        return {address: transactions for address, transactions in found if transactions is not None}


def _place(address: str) -> tuple[str, str]:
    """Return the address of a file system that the table may share with others, and the table's path in it."""
    folder, _, name = address.rpartition("/")
    # Other names may be written differently in an address and in a path.
    shared = _PLAIN.fullmatch(name) and not folder.endswith("/") and local_path(address) is None
    return (folder, name) if shared else (address, "")


@cache
def _kept(root: str, storage: tuple[tuple[str, str], ...]) -> pa_fs.FileSystem:
    return filesystem(root, dict(storage))


def _sizes(log: LogListing, table: str) -> dict[str, int]:
    """Return the bytes of the newest few commits by path."""
    newest = range(max(0, log.newest - _FEW + 1), log.newest + 1)
    return {commit_path(version, table): log.commits[version] for version in newest if version in log.commits}
