"""Reads all application transactions (`txn`) of a Delta table from its log.

delta-rs returns one application id per call and replays the log each time: 0.2 to 0.6 ms, times hundreds of partitions.
Here one pass over the checkpoint and the commits after it gives every id, and a later call reads only new commits. It
reads classic checkpoints (one file or several parts) and commits; see the Delta protocol, "Delta Log Entries".
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import Transaction

from spark_sink.errors import TableError, plain
from spark_sink.lake.delta_log_files import lines_of, list_log, log_errors, read_commit, transactions_of
from spark_sink.lake.files_doubled_by_optimize import RewriteLineage
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import filesystem

OURS = "kafka-azimuth"  # in the metadata of each of our commits

# A checkpoint does not contain the operations of its commits, and delta-rs may write one right after a RESTORE.
_LOOKED_BACK = 10

_FOREVER_MS = 253_402_300_799_000  # the end of the year 9999, ms since 1970

_RESTORE = '"RESTORE"'
_REPLACE, _CLONE = "REPLACE TABLE", "CLONE"
_REPLACES = {f"{create}{_REPLACE}{select}" for create in ("", "CREATE OR ") for select in ("", " AS SELECT")} | {_CLONE}


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit of the log, without its files.

    Attributes:
        version: of the table.
        text: the actions, one a line.
    """

    version: int
    text: str

    @property
    def transactions(self) -> Mapping[str, int]:
        """Version by application id, as far as this commit sets them."""
        return dict(transactions_of(self.text))

    @property
    def note(self) -> Mapping[str, Any]:
        """Our metadata; empty for a commit of another writer."""
        return our_note(self.text)

    @property
    def restore(self) -> Mapping[str, Any] | None:
        """The parameters of a RESTORE; None for other operations."""
        infos = _commit_infos(lines_of(self.text)) if _RESTORE in self.text else ()
        found = next((one for one in infos if one.get("operation") == "RESTORE"), None)
        parameters = None if found is None else found.get("operationParameters")
        return parameters if found is None or isinstance(parameters, dict) else {}

    @property
    def replaces_table(self) -> bool:
        """Whether this is a CREATE OR REPLACE TABLE: it removes the rows, and Delta keeps the transactions.

        With CLONE it has one name for a table that is replaced and for a new one, which has no transactions to refuse.
        """
        infos = _commit_infos(lines_of(self.text)) if _REPLACE in self.text or f'"{_CLONE}"' in self.text else ()
        return any(one.get("operation") in _REPLACES for one in infos)

    def brought_back(self, find: Callable[[int], int]) -> int | None:
        """Return the version that a RESTORE brought back; None for other operations.

        Args:
            find: finds it from the RESTORE's own version, for a RESTORE by time, which does not name it.
        """
        if (restore := self.restore) is None:
            return None
        named = restore.get("version")
        return find(self.version) if named is None else int(named)


def lasting(name: str, number: int) -> Transaction:
    """Return an application transaction that no retention removes.

    Once `delta.setTransactionRetentionDuration` is set, Spark leaves transactions out of its checkpoints that are older
    or have no `lastUpdated`; see the Delta protocol, "Transaction Identifiers".
    """
    return Transaction(name, number, _FOREVER_MS)


class TransactionLog:
    """The transactions of one table, up to the last version read.

    Not safe for threads: one thread reads at a time.

    Args:
        uri: address of the table.
        storage: options of its object store.
        operations: whether to read the commits before a checkpoint, too, for RESTORE and OPTIMIZE; transactions alone
            need none of them.

    Attributes:
        uri: as given.
        storage: as given.
    """

    def __init__(self, uri: str, storage: Storage | None = None, *, operations: bool = True) -> None:
        self._operations = operations
        self.uri = uri
        self.storage = storage
        self._files = filesystem(uri, storage)
        self._version = -1
        self._last: str | None = None  # the text of the commit at _version, to detect a table that was replaced
        self._transactions: dict[str, int] = {}
        self._compacted_elsewhere_ms = 0
        self._restored = -1
        self._replaced = -1
        self._changed = -1
        self._set_since_rows_removed: set[str] = set()
        self._lineage = RewriteLineage()

    @property
    def restored(self) -> int:
        """The version of the newest RESTORE in the commits read; -1 for none."""
        return self._restored

    @property
    def replaced(self) -> int:
        """The version of the newest CREATE OR REPLACE TABLE in the commits read; -1 for none."""
        return self._replaced

    @property
    def metadata_changed(self) -> int:
        """The version of the newest change of the table's metadata or protocol in the commits read; -1 for none."""
        return self._changed

    @property
    def set_since_rows_removed(self) -> AbstractSet[str]:
        """The application ids that commits after the newest RESTORE or CREATE OR REPLACE TABLE have set."""
        return self._set_since_rows_removed

    @property
    def compacted_elsewhere_ms(self) -> int:
        """Time of the last compaction by a foreign writer, ms since 1970, in the commits read; 0 for never."""
        return self._compacted_elsewhere_ms

    @property
    def version(self) -> int:
        """The last version read; -1 for no table."""
        return self._version

    @property
    def transactions(self) -> Mapping[str, int]:
        """Version by application id, as of `version`."""
        return self._transactions

    def refresh(self, version: int | None = None) -> Mapping[str, int]:
        """Read new commits.

        Args:
            version: the version to stop at; None for the newest. A version before the last one read starts over.

        Returns:
            Version by application id; empty if there is no table.

        Raises:
            TableError: the log cannot be read up to this version, because commits are missing or invalid.
        """
        with log_errors(self.uri):
            return self._read_on(version)

    @property
    def doubled(self) -> bool:
        """Whether the commits read so far have doubled rows, see `RewriteLineage`."""
        return self._lineage.doubled

    def earlier_commits(self) -> Iterator[LogEntry]:
        """Read the commits backwards from `version`, up to the first that was cleaned up."""
        # The newest was read already. A store that answers late may lack it now, and all commits would seem cleaned up.
        if self._last is not None:
            yield LogEntry(self._version, self._last)
        for version in range(self._version - (self._last is not None), -1, -1):
            entry = self.entry(version)
            if entry is None:
                return
            yield entry

    def entry(self, version: int) -> LogEntry | None:
        """Read one commit; None if it was cleaned up."""
        text = read_commit(self._files, version)
        return None if text is None else LogEntry(version, text)

    def has_commit(self, version: int) -> bool:
        """Return whether this version was committed, by any writer."""
        return read_commit(self._files, version) is not None

    def moved(self) -> bool:
        """Return whether the last commit read is gone or differs: it was cleaned up, or the table was replaced."""
        return read_commit(self._files, self._version) != self._last

    def _read_on(self, version: int | None) -> Mapping[str, int]:
        if self._version < 0 or self.moved() or (version is not None and version < self._version):
            self._load(version)
        while version is None or self._version < version:
            text = read_commit(self._files, self._version + 1)
            if text is None:
                if version is not None:
                    self._load(version)
                break
            self._apply(self._version + 1, text)
        return self._transactions

    def _load(self, version: int | None) -> None:
        self._version, self._last, self._transactions, self._lineage = -1, None, {}, RewriteLineage()
        found = list_log(self._files)
        target = found.newest if version is None else version
        begin = max((at for at in found.checkpoints if at <= target), default=-1)
        if begin >= 0:
            self._transactions = dict(self._checkpoint(found.checkpoints[begin]))
            for at in range(max(0, begin - _LOOKED_BACK + 1), begin + 1) if self._operations else ():
                if at in found.commits:
                    self._note_operation(at, read_commit(self._files, at) or "")
        for at in range(begin + 1, target + 1):
            text = read_commit(self._files, at)
            if text is None and at in found.commits:
                raise TableError(
                    f"{self.uri}: version {target} cannot be read: the store lists commit {at}, and did not find it a "
                    "moment later; if this repeats, did another program clean up the log?"
                )
            if text is None:
                raise TableError(
                    f"{self.uri}: version {target} cannot be read, commit {at} is missing and there is no checkpoint "
                    "after it: was the log cleaned by hand, or is it of a kind (V2 checkpoint) not known here?"
                )
            self._apply(at, text)
        if begin == target >= 0:
            self._version, self._last = target, read_commit(self._files, target)

    def _apply(self, version: int, text: str) -> None:
        self._transactions.update(transactions_of(text))
        self._note_operation(version, text)
        self._version, self._last = version, text

    def _note_operation(self, version: int, text: str) -> None:
        self._lineage.note(text)
        if '"metaData"' in text or '"protocol"' in text:
            self._changed = version
        if max(self._restored, self._replaced) >= 0:
            self._set_since_rows_removed.update(name for name, _ in transactions_of(text))
        entry = LogEntry(version, text)
        if entry.restore is not None:
            self._restored = max(self._restored, version)
            self._set_since_rows_removed = set()
            self._lineage.forget()
        elif entry.replaces_table:
            self._replaced = max(self._replaced, version)
            self._set_since_rows_removed = set()
        if '"OPTIMIZE"' in text:
            self._compacted_elsewhere_ms = max(self._compacted_elsewhere_ms, _compacted_elsewhere(lines_of(text)))

    def _checkpoint(self, paths: Iterable[str]) -> Iterator[tuple[str, int]]:
        for path in paths:
            try:
                rows = self._checkpoint_rows(path)
            except (OSError, ValueError) as error:  # Arrow's own have no name of the file
                raise OSError(f"the checkpoint {path}: {plain(error)}") from error
            yield from ((one["appId"], one["version"]) for one in rows.drop_null().to_pylist() if one["appId"])

    def _checkpoint_rows(self, path: str) -> pa.ChunkedArray:
        with self._files.open_input_file(path) as file:
            parquet = pq.ParquetFile(file, pre_buffer=True)
            if "txn" not in parquet.schema_arrow.names:
                raise TableError(
                    f"{self.uri}: the checkpoint {path} has no application transactions (column txn), which hold "
                    "the positions; nothing was written. The program that wrote it does not follow Delta's "
                    "protocol. If the log still has the commits before it, delete this file and "
                    "_last_checkpoint; else put the log back from a backup"
                )
            return parquet.read(columns=["txn"]).column("txn")


def our_note(text: str) -> Mapping[str, Any]:
    """Return our metadata of a commit; empty for a commit of another writer."""
    for line in lines_of(text):
        if '"commitInfo"' in line and OURS in line and "commitInfo" in (action := json.loads(line)):
            found = action["commitInfo"].get(OURS, {})
            return found if isinstance(found, dict) else {}
    return {}


def _compacted_elsewhere(lines: Iterable[str]) -> int:
    infos = (one for one in _commit_infos(lines) if one.get("operation") == "OPTIMIZE")
    return max((one.get("timestamp", 0) for one in infos if OURS not in one), default=0)


def _commit_infos(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if '"commitInfo"' in line and isinstance(info := json.loads(line).get("commitInfo"), dict):
            yield info
