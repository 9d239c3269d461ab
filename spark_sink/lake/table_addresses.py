"""The addresses of tables, as users write them and as the tables have them. Without Arrow and delta-rs.

Both load slowly, and settings are checked before an agent joins its fleet.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from assignors.clients import shown
from spark_sink.errors import OptionError
from spark_sink.lake.storage_names import refuse_misspelt

Storage = Mapping[str, str]

ICEBERG = "iceberg://"  # the scheme of an address
PLACEHOLDER = "{topic}"  # in an address: a table for each topic
CLUSTER = "{cluster}"  # in an address of a fleet: tables for each cluster
CATALOG = "catalog."
_PREFIX = "storage."
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_FILE = re.compile(r"file:(?://[^/]*)?(/.*)", re.DOTALL)
_ONE_SLASH = re.compile(r"([a-z][a-z0-9+.-]+):/(?!/)", re.IGNORECASE)
_UNSAFE = "cannot create a file only if it is absent, so two agents could commit the same version"
_DBFS = f"DBFS {_UNSAFE}; give the address of the object store (s3://, gs://, abfss://) instead"


def storage_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the object store and of the catalog from the options of a query.

    Those named `storage.<name>` lose their prefix; those named `catalog.<name>` keep it.

    Raises:
        OptionError: a name is mistyped.
    """
    stored = {name[len(_PREFIX) :]: value for name, value in options.items() if name.lower().startswith(_PREFIX)}
    catalog = {
        CATALOG + name[len(CATALOG) :]: value for name, value in options.items() if name.lower().startswith(CATALOG)
    }
    found = {**stored, **catalog}
    refuse_misspelt(found)
    return found


def is_iceberg(address: str) -> bool:
    """Return whether an address means an Iceberg table."""
    return address.startswith(ICEBERG)


def with_name(address: str, placeholder: str, name: str) -> str:
    """Return an address with the name of a topic or a cluster in the place of `{topic}` or `{cluster}`.

    In the name of an Iceberg table a dot separates the parts, and many catalogs and engines accept letters, digits and
    underscores only. So there every other character of the name becomes an underscore.
    """
    return address.replace(placeholder, _NOT_IN_NAMES.sub("_", name) if is_iceberg(address) else name)


def table_address(table: str, table_format: str, catalog: Storage, storage: Storage) -> str:
    """Return the address of a table by the settings of a writer.

    Args:
        table: an address, or `catalog.namespace.table` of Iceberg.
        table_format: `delta` or `iceberg`.
        catalog: options of the catalog, without the prefix `catalog.`.
        storage: options of the object store.

    Raises:
        OptionError: they do not belong together, or the name is not that of an Iceberg table.
    """
    if table_format == "iceberg":
        from spark_sink.lake.iceberg.catalogs import iceberg_address  # noqa: PLC0415 -- it imports this module

        return iceberg_address(table)
    if is_iceberg(full_address(table, storage)):
        raise OptionError(f"table {table!r} is an Iceberg table; set table_format=iceberg")
    if catalog or any(name.startswith(CATALOG) for name in storage):
        raise OptionError(f"table {table!r} is a Delta table, which has no catalog; set table_format=iceberg")
    return table


def table_storage(storage: Storage, catalog: Storage) -> dict[str, str]:
    """Return the options of the object store and of the catalog, as a table takes them."""
    return {**storage, **{f"{CATALOG}{name}": value for name, value in catalog.items()}}


def full_address(table: str, storage: Storage) -> str:
    """Return the address of a table of either format, as a user may name it.

    `catalog.namespace.table` with options of a catalog means an Iceberg table, unless there is a folder of this name.
    """
    catalog = any(name.startswith(CATALOG) for name in storage)
    return ICEBERG + table if catalog and looks_iceberg(table) else table


def looks_iceberg(table: str) -> bool:
    """Return whether a text has the form `catalog.namespace.table`, and is not the name of a folder."""
    return "/" not in table and table.count(".") > 1 and not Path(table).exists()


def split_address(text: str) -> SplitResult:
    """Return the parts of an address.

    Raises:
        OptionError: it has brackets that are not those of a host, as in `http://[::1]:9000`.
    """
    try:
        return urlsplit(text)
    except ValueError as error:
        raise OptionError(
            f"{shown(text)}: is not an address ({error}): brackets before the first / belong around an IPv6 host only"
        ) from error


def local_path(uri: str) -> Path | None:
    """Return the folder of a plain path or a `file:` address; None for an object store.

    Raises:
        OptionError: the address is in Databricks' file system, has a scheme with one slash, or is none.
    """
    parts = split_address(uri)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if parts.scheme == "dbfs":
        raise OptionError(f"{uri}: {_DBFS}")
    if scheme := _ONE_SLASH.match(uri):
        raise OptionError(
            f"{uri}: is neither a folder nor an address; an address begins with {scheme[1]}://, a folder with / or ./"
        )
    # A scheme of one letter is a drive; a text without `://` is a path, even with colons.
    return None if "://" in uri else Path(uri)


def folder_of_spark(address: str) -> str:
    """Return the folder that Spark means: it takes every character of a `file:` address as it is, also `%20`."""
    found = _FILE.fullmatch(address)
    return found[1] if found else address


def table_uri(path: str) -> str:
    """Return the canonical address of a table.

    A local folder becomes an absolute path without links. For an object store, the scheme is the store's first name
    (`s3` for `s3a`) in lower case, and there is no slash at the end.

    Raises:
        OptionError: there is no path, it is a file, delta-rs mistakes it for another path or reads only a part of it,
            or its file system cannot create a file only if it is absent.
    """
    if not path.strip():
        raise OptionError("option 'path': empty, need the address of the table (a folder, s3://, gs://, abfss://)")
    local = local_path(path)
    if local is None:
        scheme, _, place = path.partition("://")
        _refuse_left_out(path)
        return f"{_SAME_STORE.get(scheme.lower(), scheme.lower())}://{place.rstrip('/')}"
    try:
        address, file = str(local.resolve()), local.is_file()
    except FileNotFoundError:  # the current folder is gone
        raise
    except (OSError, ValueError, RuntimeError) as error:  # too long, not permitted, no name, or links in a circle
        raise OptionError(f"option 'path': {path[:200]!r} is not the name of a folder: {error}"[:500]) from error
    refuse_mounted_store(address)
    if file:
        raise OptionError(f"{address}: is a file, need the folder of a table")
    if unquote(address) != address:
        # For the table `a%20b`, delta-rs reads the log of `a b`, and writes elsewhere.
        raise OptionError(
            f"{address}: a % with two hexadecimal digits in it would be read as another folder; rename it"
        )
    if os.sep == "/" and "\\" in address:
        # delta-rs writes to `a\b`, and reads the log of `a/b`.
        raise OptionError(f"{address}: a backslash in it would be read as a slash; rename it")
    return address


def _refuse_left_out(address: str) -> None:
    # The rest is not shown, because it may be the signature of a link.
    if found := re.search(r"[?#]", address):
        raise OptionError(
            f"{address[: found.start()]}: has a {found[0]} after it, from which on delta-rs leaves out the address, so "
            "several tables would be one; rename the folder, or give credentials as options storage.*"
        )


def refuse_mounted_store(folder: str) -> None:
    """Refuse an absolute path at which Databricks mounts a store that cannot keep a table's commits apart.

    Raises:
        OptionError: it is in a Unity Catalog volume, or in DBFS.
    """
    if folder.startswith("/Volumes/") and sys.platform != "darwin":  # macOS mounts its disks there
        raise OptionError(
            f"{folder}: a Unity Catalog volume {_UNSAFE}; give the volume's storage location (DESCRIBE VOLUME shows "
            "it) instead"
        )
    if folder.startswith("/dbfs/"):
        raise OptionError(f"{folder}: {_DBFS}")
