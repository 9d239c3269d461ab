"""The existing tables of an address with placeholders, as agents write them."""

import re
from collections.abc import Iterator
from typing import Final

import pyarrow.fs as pa_fs

from spark_sink.errors import OptionError, TableError
from spark_sink.formats.quarantine_addresses import SUFFIX, base_of
from spark_sink.lake.iceberg.catalogs import iceberg_address
from spark_sink.lake.iceberg.matching_names import tables_of_topics
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.table_addresses import Storage, is_iceberg, local_path, table_uri
from spark_sink.lake.table_storage import filesystem, folders_in, is_delta_table, listing

_PLACEHOLDER: Final = re.compile(r"\{(?:topic|cluster)\}")
_LOG: Final = "_delta_log"


def has_placeholder(address: str) -> bool:
    """Return whether an address names several tables: `{topic}` or `{cluster}` is in it."""
    return _PLACEHOLDER.search(address) is not None


def matching_tables(address: str, storage: Storage | None = None) -> list[str]:
    """Return the tables that an address names, sorted, without their quarantines.

    Args:
        address: a folder, an address on an object store or that of an Iceberg table; `{topic}` and `{cluster}` may
            stand in any part of it.
        storage: options of the object store and of the catalog.

    Returns:
        The addresses; an address without a placeholder as it is, whether or not there is a table.

    Raises:
        OptionError: a placeholder stands for the bucket, or no store has the address's scheme.
        TableError: no table matches, or the folders cannot be listed.
    """
    if not has_placeholder(address):
        return [address]
    if is_iceberg(address):
        return _iceberg_tables(address, storage or {})
    refuse_bucket(address)
    base, parts = _split(address)
    with listing(base):
        files = filesystem(base, storage)
        found = set(_below(files, "", parts))
        tables = sorted(path for path in found if not _is_quarantine(files, path))
    if not tables:
        raise TableError(f"{address}: no Delta table matches; check the address, and that an agent has committed")
    return [f"{base.rstrip('/')}/{path}" for path in tables]


def _iceberg_tables(address: str, storage: Storage) -> list[str]:
    found = [one for one, _ in tables_of_topics(iceberg_address(address), storage)]
    if not found:
        raise TableError(f"{address}: no Iceberg table matches; check the name, and that an agent has committed")
    return [one for one in found if base_of(one) not in found]


def refuse_bucket(address: str) -> None:
    """Refuse an address in which a placeholder stands for the bucket.

    Raises:
        OptionError: it does.
    """
    _, scheme, place = address.partition("://")
    bucket = place.partition("/")[0]
    if scheme and (found := _PLACEHOLDER.search(bucket)):
        raise OptionError(
            f"{address}: {found[0]} stands in the name of the bucket, and buckets cannot be listed; name the bucket, "
            "and use the placeholder after it, as in s3://bucket/{topic}"
        )


def refuse_quarantine(command: str, table: str, storage: Storage | None = None) -> None:
    """Refuse the address of a quarantine, for a command that needs the address of its table.

    Args:
        command: its name after `azimuth`.
        table: a folder, an address on an object store or that of an Iceberg table.
        storage: options of the object store and of the catalog.

    Raises:
        TableError: it is a quarantine's: its table is beside it.
    """
    base = base_of(table_uri(table))
    if base is not None and _is_there(base, storage or {}):
        raise TableError(
            f"{table} is the quarantine of {base}, and nothing was done: `azimuth {command} {base}` includes it"
        )


def _is_there(address: str, storage: Storage) -> bool:
    if is_iceberg(address):
        return open_stored(address, storage, rolled_back=True) is not None
    return is_delta_table(address, storage)


def _is_quarantine(files: pa_fs.FileSystem, path: str) -> bool:
    """Return whether this is the quarantine of a table: it looks like the table of a topic with a longer name."""
    return path.endswith(SUFFIX) and _is_table(files, path.removesuffix(SUFFIX))


def _is_table(files: pa_fs.FileSystem, path: str) -> bool:
    """Return whether a folder has a log; its own listing would be long, because it has all data files."""
    return bool(files.get_file_info(f"{path}/{_LOG}").type == pa_fs.FileType.Directory)


def _split(address: str) -> tuple[str, list[str]]:
    """Return the part before the first placeholder, and the names below it."""
    before = _PLACEHOLDER.split(address, maxsplit=1)[0]
    parent, slash, _ = before.rpartition("/")
    rest = address[len(parent) + len(slash) :].rstrip("/")
    if local_path(address) is not None:
        return table_uri(parent or slash or "."), rest.split("/")
    return parent, rest.split("/")


def _below(files: pa_fs.FileSystem, folder: str, parts: list[str]) -> Iterator[str]:
    """Yield the paths of the tables below a folder whose names match the parts of an address, one after another."""
    name, rest = parts[0], parts[1:]
    names = _matching(name, files, folder) if has_placeholder(name) else [name]
    for one in names:
        path = f"{folder}/{one}" if folder else one
        if rest:
            yield from _below(files, path, rest)
        elif _is_table(files, path):
            yield path


def _matching(name: str, files: pa_fs.FileSystem, folder: str) -> list[str]:
    fixed = (re.escape(text) for text in _PLACEHOLDER.split(name))
    pattern = re.compile("(.+)".join(fixed))
    return [one for one in folders_in(files, folder) if pattern.fullmatch(one)]
