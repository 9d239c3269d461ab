"""Replaces files in one commit, if all files that the replacement depends on are still in the table.

delta-rs commits the removal of files that another commit has already removed, and every row is then in the table twice.
So each attempt writes exactly the version after the one whose files were compared, or fails.

Only paths are compared, which is enough while the table has known features only: a file then means exactly its rows. A
rewrite is planned only for such a table, so deletion vectors that come later come with a new feature of the table. Each
attempt looks for such features.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from spark_sink.errors import ConflictError
from spark_sink.lake.delta_transaction import commit
from spark_sink.lake.file_rewrite import Rewrite, refuse_unknown_features

ATTEMPTS = 30


def replace_files(
    handle: DeltaTable,
    rewrites: Sequence[Rewrite],
    note: Mapping[str, object],
    transactions: Sequence[Transaction] = (),
    rests_on: Collection[str] = (),
) -> bool:
    """Commit rewrites on top of the newest version.

    Args:
        handle: handle of the table; afterwards it is at the newest version.
        rewrites: files to remove and to add.
        note: JSON for the table's history.
        transactions: application transactions to set in the commit.
        rests_on: paths of further files that must be in the table.

    Returns:
        Whether it was committed; False if a file is no longer in the table.

    Raises:
        TableError: the table has a feature that is not known here, so its files may have lost rows since the rewrite
            was planned; nothing was changed.
        ConflictError: other writers were faster each time; nothing was changed.
        CommitFailedError: delta-rs does not write to the table.
    """
    actions: list[AddAction | RemoveAction] = []
    for one in rewrites:
        actions += [*one.adds, *one.removes]
    needed = {action.path for one in rewrites for action in one.removes} | _stored(rests_on)
    for _ in range(ATTEMPTS):
        refuse_unknown_features(handle)
        if not needed <= active_paths(handle):
            return False
        try:
            commit(handle, actions, transactions, note, retries=0)
        except CommitFailedError:
            compared = handle.version()
            handle.update_incremental()
            if handle.version() == compared:  # no other writer, so delta-rs refuses to write to this table
                raise
            continue
        handle.update_incremental()
        return True
    raise ConflictError(f"other writers were faster {ATTEMPTS} times in a row")


def active_paths(handle: DeltaTable) -> set[str]:
    """Return the files of the handle's version, as paths in the table's file system."""
    return _stored(pa.table(handle.get_add_actions(flatten=True)).column("path").to_pylist())


def _stored(paths: Iterable[str]) -> set[str]:
    """Return paths of the log as paths in the table's file system, which is what actions take; they escape them."""
    return set(map(unquote, paths))
