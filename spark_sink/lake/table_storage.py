"""Where a table lies: one file system, rooted at the table, for local folders and object stores alike."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pa_fs
from deltalake.fs import DeltaStorageHandler

from spark_sink.errors import OptionError

if TYPE_CHECKING:
    from deltalake._internal import ObjectOutputStream

Storage = Mapping[str, str]

PLACEHOLDER = "{topic}"  # in an address: a table of each topic
_PREFIX = "storage."
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}


def storage_options(options: Mapping[str, str]) -> dict[str, str]:
    """Take what is meant for the object store out of the options of a query: `storage.<name>`, the rest unchanged."""
    return {name[len(_PREFIX) :]: value for name, value in options.items() if name.lower().startswith(_PREFIX)}


def local_path(uri: str) -> Path | None:
    """The folder that a plain path or a `file:` address means; None for an object store."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    # A scheme of one letter is a drive; anything without `://` is a path, colons and all.
    return None if "://" in uri else Path(uri)


def table_uri(path: str) -> str:
    """One spelling for one table, however its address is spelled.

    A local folder becomes an absolute path without links; in an address of an object store the scheme is the store's
    first name (`s3` for `s3a`), in lower case, and no slash stands at the end.

    Raises:
        OptionError: there is no path, it is a file, or it is one that delta-rs mistakes for another.
    """
    if not path.strip():
        raise OptionError("option 'path': empty, need the address of the table (a folder, s3://, gs://, abfss://)")
    local = local_path(path)
    if local is None:
        scheme, _, place = path.partition("://")
        return f"{_SAME_STORE.get(scheme.lower(), scheme.lower())}://{place.rstrip('/')}"
    address = str(local.resolve())
    if local.is_file():
        raise OptionError(f"{address}: is a file, need the folder of a table")
    if unquote(address) != address:
        # delta-rs reads the log of `a b` for the table `a%20b`, and writes beside it.
        raise OptionError(
            f"{address}: a % with two hexadecimal digits in it would be read as another folder; rename it"
        )
    return address


def filesystem(uri: str, storage: Storage | None = None, *, make: bool = False) -> pa_fs.FileSystem:
    """A file system whose paths are relative to this address.

    Args:
        uri: a folder or an address on an object store.
        storage: options of the object store.
        make: make a local folder that is not there; object stores have none.
    """
    local = local_path(uri)
    if local is not None:
        if make:
            local.mkdir(parents=True, exist_ok=True)
        return pa_fs.SubTreeFileSystem(str(local.absolute()), pa_fs.LocalFileSystem())
    return pa_fs.PyFileSystem(_ObjectStore(uri, dict(storage or {})))


class _ObjectStore(DeltaStorageHandler):
    """delta-rs' store for Arrow, with output that takes what Arrow hands it: buffers, where delta-rs takes bytes."""

    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
        return pa.PythonFile(_Output(self._handler.open_output_stream(path, metadata)))


class _Output:
    """What Arrow asks of a file that it writes; the object is there once it is closed."""

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
        """Do nothing: parts go out when they are large enough, and the rest at the end."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._stream.close()  # type: ignore[attr-defined]  # missing in its stub


def read_text(files: pa_fs.FileSystem, path: str) -> str | None:
    """The whole of a small file; None where it does not exist."""
    try:
        with files.open_input_stream(path) as stream:
            return bytes(stream.read()).decode()
    except FileNotFoundError:
        return None
