"""The files of a Delta log, and the application transactions (`txn`) in a commit. See the Delta protocol."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow.fs as pa_fs

from spark_sink.errors import TableError, plain
from spark_sink.lake.table_storage import read_text

# The last two: an entry is JSON, but does not have the shape of an action.
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)

TRANSACTIONS = "kafka-azimuth.transactions"
"""How many application transactions one of our commits has, in its metadata; delta-rs writes the metadata first."""
_COUNTED = re.compile(rf'^\{{"commitInfo":.*"{re.escape(TRANSACTIONS)}":(\d+)', re.MULTILINE)
_TRANSACTION = re.compile(r'^\{"txn":', re.MULTILINE)

_LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:parquet|(\d{10})\.(\d{10})\.parquet)")


@dataclass(frozen=True, slots=True)
class LogListing:
    """The content of a log: versions with a commit and its bytes, and complete checkpoints with their files."""

    commits: Mapping[int, int]
    checkpoints: Mapping[int, tuple[str, ...]]

    @property
    def newest(self) -> int:
        """The newest version; -1 if there is no table."""
        return max(self.commits.keys() | self.checkpoints.keys(), default=-1)


def list_log(files: pa_fs.FileSystem, table: str = "") -> LogListing:
    """List a log in one request; empty if there is no table.

    Args:
        files: the storage.
        table: path of the table in it.
    """
    selector = pa_fs.FileSelector(log_path(table), allow_not_found=True)
    infos = files.get_file_info(selector)
    commits = {int(found[1]): info.size for info in infos if (found := _COMMIT.fullmatch(info.base_name))}
    parts: dict[tuple[int, int], list[str]] = {}
    for name in sorted(info.base_name for info in infos):
        if found := _CHECKPOINT.fullmatch(name):
            parts.setdefault((int(found[1]), int(found[3] or 1)), []).append(f"{log_path(table)}/{name}")
    whole = {version: tuple(names) for (version, count), names in parts.items() if len(names) == count}
    return LogListing(commits, whole)


@contextmanager
def log_errors(uri: str) -> Iterator[None]:
    """Convert errors of a log's reading.

    Raises:
        TableError: the block has failed.
    """
    try:
        yield
    except _UNREADABLE as error:
        raise TableError(f"{uri}: the table's log cannot be read: {plain(error)}") from error


def log_path(table: str = "") -> str:
    """Return the path of a table's log."""
    return f"{table}/{_LOG}" if table else _LOG


def commit_path(version: int, table: str = "") -> str:
    """Return the path of a commit."""
    return f"{log_path(table)}/{version:020}.json"


def read_commit(files: pa_fs.FileSystem, version: int, table: str = "") -> str | None:
    """Read a commit; None if it does not exist.

    A store reads as many bytes as its answer to HEAD says. Some proxies say 0, or the length of a compressed answer. A
    commit cut so looks like one without transactions, and its batch would be written again. One that is cut after a
    line is still JSON, so our commits say how many transactions they have.

    Args:
        files: the storage.
        version: of the commit.
        table: path of the table in it.

    Raises:
        OSError: the storage gives another number of bytes than its listing says, or bytes that are no text.
    """
    path = commit_path(version, table)
    try:
        text = read_text(files, path)
    except UnicodeDecodeError as error:  # perhaps cut in the middle of a character
        raise OSError(f"{path}: the {len(error.object)} bytes that were read are no text") from error
    if text is not None and not _is_whole(text):
        # A machine that lost its power may have an empty file, so only a difference is an error.
        listed = list_log(files, table).commits.get(version)
        if listed is not None and listed != (read := len(text.encode())):
            raise OSError(f"{path}: {read} bytes were read, and {listed} are stored")
    return text


def _is_whole(text: str) -> bool:
    *_, last = lines_of(text.rstrip("\n"))
    try:
        json.loads(last)
    except ValueError:
        return False
    counted = _COUNTED.search(text)
    return counted is None or len(_TRANSACTION.findall(text)) >= int(counted[1])


def lines_of(text: str) -> list[str]:
    """Return the actions of a commit: `str.splitlines` would also cut at characters that JSON leaves unescaped."""
    return text.split("\n")


def transactions_of(text: str) -> Iterator[tuple[str, int]]:
    """Return application id and version of each transaction of a commit."""
    # Most lines are files, which are slow to parse. The others are parsed together, in half of the time.
    found = ",".join(line for line in lines_of(text) if '"txn"' in line)
    for action in json.loads(f"[{found}]"):
        if "txn" in action:
            yield action["txn"]["appId"], int(action["txn"]["version"])
