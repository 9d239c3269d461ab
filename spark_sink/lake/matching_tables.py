"""The existing tables of an address with placeholders, as agents write them."""

import re
from collections.abc import Iterator
from typing import Final

import pyarrow.fs as pa_fs

from spark_sink.errors import TableError
from spark_sink.formats.quarantined_rows import SUFFIX
from spark_sink.lake.table_storage import Storage, filesystem, is_iceberg, local_path, table_uri

_PLACEHOLDER: Final = re.compile(r"\{(?:topic|cluster)\}")
_LOG: Final = "_delta_log"


def has_placeholder(address: str) -> bool:
    """Return whether an address names several tables: `{topic}` or `{cluster}` is in it."""
    return _PLACEHOLDER.search(address) is not None


def matching_tables(address: str, storage: Storage | None = None) -> list[str]:
    """Return the Delta tables that an address names, sorted, without their quarantines.

    Args:
        address: a folder or an address on an object store; `{topic}` and `{cluster}` may stand in any part of it.
        storage: options of the object store.

    Returns:
        The addresses; an address without a placeholder as it is, whether or not there is a table.

    Raises:
        TableError: no table matches, or the folders cannot be listed.
    """
    if not has_placeholder(address) or is_iceberg(address):
        return [address]
    base, parts = _split(address)
    try:
        found = set(_below(base, parts, storage))
    except OSError as error:
        raise TableError(f"{base}: its folders cannot be listed: {error.strerror or error}") from error
    tables = sorted(uri for uri in found if not _is_quarantine(uri, storage))
    if not tables:
        raise TableError(f"{address}: no Delta table matches; check the address, and that an agent has committed")
    return tables


def _is_quarantine(uri: str, storage: Storage | None) -> bool:
    """Return whether this is the quarantine of a table: it looks like the table of a topic with a longer name."""
    return uri.endswith(SUFFIX) and _LOG in _folders(uri.removesuffix(SUFFIX), storage)


def _split(address: str) -> tuple[str, list[str]]:
    """Return the part before the first placeholder, and the names below it."""
    before = _PLACEHOLDER.split(address, maxsplit=1)[0]
    parent, slash, _ = before.rpartition("/")
    rest = address[len(parent) + len(slash) :].rstrip("/")
    if local_path(address) is not None:
        return table_uri(parent or slash or "."), rest.split("/")
    return parent, rest.split("/")


def _below(base: str, parts: list[str], storage: Storage | None) -> Iterator[str]:
    """Return the tables below a folder whose names match the parts of an address, one after another."""
    name, rest = parts[0], parts[1:]
    names = _matching(name, base, storage) if has_placeholder(name) else [name]
    for one in names:
        uri = f"{base.rstrip('/')}/{one}"
        if rest:
            yield from _below(uri, rest, storage)
        elif _LOG in _folders(uri, storage):
            yield uri


def _matching(name: str, base: str, storage: Storage | None) -> list[str]:
    fixed = (re.escape(text) for text in _PLACEHOLDER.split(name))
    pattern = re.compile("(.+)".join(fixed))
    return [one for one in _folders(base, storage) if pattern.fullmatch(one)]


def _folders(uri: str, storage: Storage | None) -> list[str]:
    found = filesystem(uri, storage).get_file_info(pa_fs.FileSelector("", allow_not_found=True))
    return sorted(one.base_name for one in found if one.type == pa_fs.FileType.Directory)
