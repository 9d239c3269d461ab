"""The storage of a table: one file system, rooted at the table, for local folders and object stores."""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pa_fs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from assignors.clients import shown
from spark_sink.errors import OptionError, TableError, plain
from spark_sink.lake.storage_names import refuse_misspelt

if TYPE_CHECKING:
    from deltalake._internal import ObjectOutputStream

Storage = Mapping[str, str]

ICEBERG = "iceberg://"  # the scheme of an address
PLACEHOLDER = "{topic}"  # in an address: a table for each topic
CLUSTER = "{cluster}"  # in an address of a fleet: tables for each cluster
CATALOG = "catalog."
_PREFIX = "storage."
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_ONE_SLASH = re.compile(r"([a-z][a-z0-9+.-]+):/(?!/)", re.IGNORECASE)
_UNSAFE = "cannot create a file only if it is absent, so two agents could commit the same version"
_NO_SCHEME = "no object store has this scheme; an address begins with s3://, gs:// or abfss://, a folder with / or ./"
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


def no_delta_table(uri: str) -> str:
    """Return a sentence about an absent Delta table.

    Perhaps its address is wrong, which delta-rs reports as a table that does not exist, or it is the name of an Iceberg
    table without its prefix.
    """
    if wrong := _wrong_address(uri):
        return f"{uri}: {wrong}"
    name = uri.rpartition("/")[2]
    hint = (
        f"; an Iceberg table has the address {ICEBERG}{name}, or options of its catalog" if looks_iceberg(name) else ""
    )
    return f"{uri}: there is no Delta table{hint}"


def no_iceberg_table(address: str) -> str:
    """Return a sentence about an absent Iceberg table: perhaps its name is wrong, or the catalog is another one."""
    return f"{address}: there is no Iceberg table; are the name and the options of the catalog right?"


def is_delta_table(uri: str, storage: Storage | None = None) -> bool:
    """Return whether there is a Delta table at an address.

    Raises:
        TableError: the store cannot be opened, or does not answer.
    """
    try:
        return DeltaTable.is_deltatable(uri, dict(storage or {}) or None)
    except (DeltaError, OSError) as error:
        raise TableError(f"{uri}: the table cannot be read: {plain(error)}") from error


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


def table_uri(path: str) -> str:
    """Return the canonical address of a table.

    A local folder becomes an absolute path without links. For an object store, the scheme is the store's first name
    (`s3` for `s3a`) in lower case, and there is no slash at the end.

    Raises:
        OptionError: there is no path, it is a file, delta-rs mistakes it for another path, or its file system cannot
            create a file only if it is absent.
    """
    if not path.strip():
        raise OptionError("option 'path': empty, need the address of the table (a folder, s3://, gs://, abfss://)")
    local = local_path(path)
    if local is None:
        scheme, _, place = path.partition("://")
        return f"{_SAME_STORE.get(scheme.lower(), scheme.lower())}://{place.rstrip('/')}"
    address = str(local.resolve())
    refuse_mounted_store(address)
    if local.is_file():
        raise OptionError(f"{address}: is a file, need the folder of a table")
    if unquote(address) != address:
        # For the table `a%20b`, delta-rs reads the log of `a b`, and writes elsewhere.
        raise OptionError(
            f"{address}: a % with two hexadecimal digits in it would be read as another folder; rename it"
        )
    return address


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


def filesystem(uri: str, storage: Storage | None = None, *, make: bool = False) -> pa_fs.FileSystem:
    """Return a file system whose paths are relative to this address.

    Args:
        uri: a folder or an address on an object store.
        storage: options of the object store.
        make: create a missing local folder; object stores have no folders.

    Raises:
        OptionError: the address is an Iceberg table's, or no store has its scheme.
        TableError: the store cannot be opened: the address or an option lacks something.
    """
    if is_iceberg(uri):
        raise OptionError(f"{uri} is an Iceberg table, which this command does not support yet; it reads Delta tables")
    local = local_path(uri)
    if local is not None:
        if make:
            local.mkdir(parents=True, exist_ok=True)
        return pa_fs.SubTreeFileSystem(str(local.absolute()), pa_fs.LocalFileSystem())
    try:
        return pa_fs.PyFileSystem(_ObjectStore(uri, dict(storage or {})))
    except (DeltaError, OSError) as error:
        if wrong := _wrong_address(uri):
            raise OptionError(f"{uri}: {wrong}") from error
        raise TableError(f"{uri}: its object store cannot be opened: {plain(error)}") from error


def _wrong_address(uri: str) -> str | None:
    """Return what is wrong with the address of an object store; None if delta-rs can parse it."""
    if local_path(uri) is not None:
        return None
    try:
        _ObjectStore(uri, {})
    except TableNotFoundError as error:
        return _NO_SCHEME if str(error).startswith("Unknown scheme") else f"is not an address: {plain(error)}"
    except (DeltaError, OSError):
        return None
    return None


def folders_in(files: pa_fs.FileSystem, path: str = "") -> list[str]:
    """Return the names of the folders at a path of a file system, sorted; none if the path does not exist."""
    found = files.get_file_info(pa_fs.FileSelector(path, allow_not_found=True))
    return sorted(one.base_name for one in found if one.type == pa_fs.FileType.Directory)


@contextmanager
def listing(uri: str) -> Iterator[None]:
    """Convert errors of a listing into one sentence with the address.

    Raises:
        TableError: the block has failed.
    """
    try:
        yield
    except (OSError, DeltaError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else plain(error)
        raise TableError(f"{uri}: its folders cannot be listed: {why}") from error


class _ObjectStore(DeltaStorageHandler):
    """delta-rs' store for Arrow, with output that accepts Arrow's buffers; delta-rs accepts only bytes."""

    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
        return pa.PythonFile(_Output(self._handler.open_output_stream(path, metadata)))


class _Output:
    """The methods of an output file that Arrow calls; the object exists after the close."""

    mode = "wb"

    def __init__(self, stream: "ObjectOutputStream") -> None:
        self._stream, self._written = stream, 0
        self.closed = False

    def write(self, data: pa.Buffer) -> int:
        self._stream.write(plain := bytes(data))
        self._written += len(plain)
        return len(plain)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """Do nothing: parts are sent when they are large enough, and the rest at the end."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._stream.close()  # type: ignore[attr-defined]  # missing in its stub


def read_text(files: pa_fs.FileSystem, path: str) -> str | None:
    """Return the content of a small file; None if it does not exist."""
    try:
        with files.open_input_stream(path) as stream:
            return bytes(stream.read()).decode()
    except FileNotFoundError:
        return None
