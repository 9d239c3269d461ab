"""Puts back the bad records that a RESTORE of the quarantine removed.

A RESTORE removes records and leaves the positions, so no agent would read them again. The version before the first
RESTORE that no rewind has resolved has all of them, for every group; what writers added after it is added again.

    version 4       bad 1, 5
    5   RESTORE     bad 1
    6   added       bad 1, 9       by an agent that had looked before the RESTORE
    7   RESTORE     bad 1
    rewind          bad 1, 5, 9    version 4, and the files of commit 6
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from spark_sink.errors import TableError, plain
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_log_files import lines_of
from spark_sink.lake.delta_log_reader import LogEntry, TransactionLog
from spark_sink.lake.fenced_replacement import active_paths
from spark_sink.lake.newest_version import newest_handle
from spark_sink.lake.positions_in_delta_log import rewound
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import is_delta_table
from spark_sink.sink.rewind.rewind_commit import KIND, NOTE, commit_positions

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What RESTOREs of a quarantine have changed.

    Attributes:
        address: of the quarantine.
        version: of the quarantine, at which it was compared.
        before: the version before the first of them; None if a rewind of another group has put the records back.
        whole: the quarantine has the files of that version, and none that a RESTORE brought.
        added: files that writers added after that version and the quarantine lacks.
    """

    address: str
    version: int
    before: int | None
    whole: bool
    added: Mapping[str, AddAction] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the quarantine is as it would be without the RESTOREs."""
        return self.whole and not self.added


def find_taken(uri: str, group: str, storage: Storage | None) -> Taken | None:
    """Compare the quarantine of a table with its version before RESTOREs that the group has not resolved.

    Args:
        uri: address of the table.
        group: the consumer group.
        storage: options of the object store.

    Returns:
        None if the quarantine was not restored.

    Raises:
        TableError: a version or its log cannot be read.
    """
    address, options = quarantine_of(uri), dict(storage or {}) or None
    if not is_delta_table(address, storage):
        return None
    handle = newest_handle(address, storage)
    log, version = TransactionLog(address, storage), handle.version()
    kept = log.refresh(version)
    mark = kept.get(rewound(group), -1)
    if log.restored <= mark:
        return None
    first, added = find_restores(address, log.earlier_commits(), mark)
    if first is None:
        return Taken(address=address, version=version, before=None, whole=True)
    try:
        wanted = active_paths(DeltaTable(address, version=first - 1, storage_options=options))
    except (DeltaError, OSError) as error:
        raise _lost(uri, address, first, error) from error
    now = active_paths(handle)
    whole = wanted <= now <= wanted | added.keys()
    present = now if whole else wanted
    left = {path: one for path, one in added.items() if path not in present}
    return Taken(address=address, version=version, before=first - 1, whole=whole, added=left)


def find_restores(address: str, entries: Iterable[LogEntry], mark: int) -> tuple[int | None, dict[str, AddAction]]:
    """Find the first RESTORE that no rewind has resolved, and what writers of bad records added after it. Pure.

    Args:
        address: of the quarantine, for messages.
        entries: the log of the quarantine, newest first.
        mark: the version that the group's newest rewind saw; -1 for none.

    Returns:
        Its version, None if a rewind of another group has resolved it; and the files by path.

    Raises:
        TableError: the log has neither a RESTORE nor such a rewind.
    """
    first: int | None = None
    newer: dict[str, AddAction] = {}
    added: dict[str, AddAction] = {}
    for entry in entries:
        if entry.version <= mark or entry.note.get("kind") == KIND:  # a rewind of any group puts all records back
            break
        if entry.restore is not None:
            first, added = entry.version, dict(newer)
        elif entry.note.get("kind") == "quarantine":
            newer |= {one.path: one for one in _added(entry.text)}
    else:
        if first is None:  # a RESTORE that was seen just now: to go on would mark it as resolved
            raise TableError(f"{address}: the commit of a RESTORE can no longer be read, so nothing was changed")
    return first, added


def put_back(uri: str, group: str, storage: Storage | None) -> None:
    """Put the records back, and mark the RESTOREs as resolved. A repetition after a crash gives the same.

    Args:
        uri: address of the table.
        group: the consumer group.
        storage: options of the object store.

    Raises:
        TableError: files of the former version are gone, or others restored the quarantine again and again.
        CommitFailedError: another writer committed in between.
    """
    for _ in range(_ATTEMPTS):
        taken = find_taken(uri, group, storage)
        if taken is None:
            return
        handle = newest_handle(taken.address, storage)
        if handle.version() != taken.version:
            continue
        # The mark goes onto exactly the version that was compared: it must resolve no RESTORE that came after it.
        if taken.whole:
            commit_positions(handle, {rewound(group): handle.version()}, NOTE, list(taken.added.values()))
            return
        assert taken.before is not None  # noqa: S101 -- else the quarantine is whole
        try:
            handle.restore(taken.before)
        except (DeltaError, OSError) as error:
            raise _lost(taken.address, taken.address, taken.before + 1, error) from error
    raise TableError(f"{quarantine_of(uri)}: others change it all the time; stop them, and run the command again")


def _added(text: str) -> Iterable[AddAction]:
    for line in lines_of(text):
        found: dict[str, Any] | None = json.loads(line).get("add") if '"add"' in line else None
        if found is not None:
            yield AddAction(
                path=unquote(found["path"]),
                size=found["size"],
                partition_values=found["partitionValues"],
                modification_time=found["modificationTime"],
                data_change=True,
                stats=found.get("stats") or "{}",
            )


def _lost(uri: str, address: str, first: int, error: Exception) -> TableError:
    return TableError(
        f"{uri}: version {first} of {address} is a RESTORE, and version {first - 1}, which has the bad records that it "
        f"took back, cannot be read or restored ({plain(error)}); nothing was changed. Put its files back from a "
        "backup, and run the command again. Without a backup, move the folder of the quarantine away: the command then "
        "gives up its records, and `azimuth verify` lists their offsets"
    )
