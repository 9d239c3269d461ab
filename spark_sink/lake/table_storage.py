"""The storage of a table: one file system, rooted at the table, for local folders and object stores."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.fs as pa_fs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from spark_sink.errors import OptionError, TableError, plain
from spark_sink.lake.table_addresses import (
    ICEBERG,
    Storage,
    is_iceberg,
    local_path,
    looks_iceberg,
)

if TYPE_CHECKING:
    from deltalake._internal import ObjectOutputStream

_Answer = TypeVar("_Answer")
_RETRY = "retry_timeout"
_RETRY_S = 30
_CUT = "list response body", "reading a body"  # in the errors of delta-rs
_CUT_ANSWERS = 2
_BEGINNINGS = "_delta_log/_last_checkpoint", f"_delta_log/{0:020}.json"  # a log that was cleaned up has the first
_NO_SCHEME = "no object store has this scheme; an address begins with s3://, gs:// or abfss://, a folder with / or ./"


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


def soon_refused(storage: Storage | None) -> dict[str, str]:
    """Return options of a store with a shorter time for retries, unless they set one; delta-rs' default is 180 s.

    delta-rs keeps the interpreter's lock while it lists a folder, opens or writes a file, or asks for a table. If the
    store does not answer, no other thread runs until the last retry: no heartbeat, no page and no handler of a signal.
    """
    given = dict(storage or {})
    return given if _RETRY in map(str.lower, given) else {_RETRY: f"{_RETRY_S}s", **given}


def is_delta_table(uri: str, storage: Storage | None = None) -> bool:
    """Return whether there is a Delta table at an address.

    Raises:
        TableError: the store cannot be opened, does not answer, or does not list the log that it has.
    """
    try:
        return DeltaTable.is_deltatable(uri, soon_refused(storage)) or _refuse_unlisted(uri, storage)
    except (DeltaError, OSError) as error:
        raise TableError(f"{uri}: the table cannot be read: {plain(error)}") from error


def _refuse_unlisted(uri: str, storage: Storage | None) -> bool:
    """Refuse an object store that has a log and does not list it yet; return whether there is a table: no.

    Raises:
        TableError: there is a log.
        OSError: the store does not answer.
    """
    if local_path(uri) is not None or _wrong_address(uri):
        return False
    files = filesystem(uri, storage)
    if found := next((path for path in _BEGINNINGS if read_text(files, path) is not None), None):
        raise TableError(
            f"{uri}: the store lists no log of a table, and {found} is there; does a cache or a proxy list new objects "
            "late? Run the command again"
        )
    return False


def filesystem(
    uri: str, storage: Storage | None = None, *, make: bool = False, sizes: Mapping[str, int] | None = None
) -> pa_fs.FileSystem:
    """Return a file system whose paths are relative to this address.

    Args:
        uri: a folder or an address on an object store.
        storage: options of the object store.
        make: create a missing local folder; object stores have no folders.
        sizes: bytes of files that do not change, by path; an object store is not asked for them.

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
        return pa_fs.PyFileSystem(_ObjectStore(uri, soon_refused(storage), dict(sizes or {})))
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


def repeated_if_cut(ask: Callable[[], _Answer]) -> _Answer:
    """Ask, and ask again if an answer was cut: delta-rs repeats a request only until an answer begins.

    Args:
        ask: only reads.
    """
    for _ in range(_CUT_ANSWERS):
        try:
            return ask()
        except (OSError, DeltaError) as error:
            if not any(words in str(error) for words in _CUT):
                raise
    return ask()


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


def address_of(files: pa_fs.FileSystem, path: str) -> str:
    """Return the address of a file, for messages: its path alone names no table.

    Args:
        files: from `filesystem`, or one of pyarrow's that is rooted at a folder.
        path: in it.
    """
    if isinstance(files, pa_fs.SubTreeFileSystem):
        return f"{files.base_path}{path}"
    handler = getattr(files, "handler", None)
    return f"{handler.address}/{path}" if isinstance(handler, _ObjectStore) else path


class _ObjectStore(DeltaStorageHandler):
    """delta-rs' store for Arrow, with output that accepts Arrow's buffers; delta-rs accepts only bytes.

    A listing whose answer was cut is requested again; delta-rs lists also to get the size of a single file.
    """

    def __init__(self, uri: str, options: dict[str, str], sizes: dict[str, int] | None = None) -> None:
        super().__init__(uri, options, sizes)
        self.address = uri.rstrip("/")

    def get_file_info_selector(self, selector: pa_fs.FileSelector) -> list[pa_fs.FileInfo]:
        return repeated_if_cut(partial(super().get_file_info_selector, selector))

    def get_file_info(self, paths: list[str]) -> list[pa_fs.FileInfo]:
        return repeated_if_cut(partial(super().get_file_info, paths))

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
