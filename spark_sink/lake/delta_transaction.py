"""Commits files and application transactions to a Delta table, and cleans up its log now and then.

By default delta-rs looks for expired entries after each commit, for which it lists the whole log. So commits would
become slower as the log grows. Here two commits in a hundred look for them.
"""

from collections.abc import Mapping, Sequence

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from spark_sink.lake.delta_log_files import TRANSACTIONS
from spark_sink.lake.delta_log_reader import OURS

CLEANUP_EVERY = 100  # versions; delta-rs' interval of checkpoints, without which nothing can be removed

_ONLY_CHECKPOINTS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


def commit(
    handle: DeltaTable,
    actions: Sequence[AddAction | RemoveAction] = (),
    transactions: Sequence[Transaction] = (),
    note: Mapping[str, object] | None = None,
    retries: int | None = None,
) -> None:
    """Commit on top of the handle's version, in one version of the table.

    Args:
        handle: handle of the table; it stays at its version.
        actions: files to add and to remove.
        transactions: application transactions to set.
        note: JSON for the table's history.
        retries: how often delta-rs may try again after commits of other writers that do not conflict; None for its own
            number.

    Raises:
        CommitFailedError: another writer was faster, or delta-rs does not write to the table.
        DeltaError: the commit failed.
        OSError: the storage refused.
    """
    # Two versions in a row: a writer that takes turns with another one commits only odd versions, or only even ones.
    cleans_up = (handle.version() + 1) % CLEANUP_EVERY in {0, 1}
    handle.create_write_transaction(
        list(actions),
        mode="append",
        schema=handle.schema(),
        partition_by=handle.metadata().partition_columns,
        commit_properties=CommitProperties(
            app_transactions=list(transactions),
            custom_metadata=metadata_of(transactions, note or {}),
            max_commit_retries=retries,
        ),
        post_commithook_properties=None if cleans_up else _ONLY_CHECKPOINTS,
    )


def metadata_of(transactions: Sequence[Transaction], note: Mapping[str, object]) -> dict[str, object]:
    """Return what a commit with these transactions has in its metadata."""
    return {OURS: dict(note), TRANSACTIONS: len(transactions)}
