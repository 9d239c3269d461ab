"""Commits of a rewind that set positions, and the mark by which the group's running writers detect it."""

from collections.abc import Mapping, Sequence

from deltalake import DeltaTable
from deltalake.transaction import AddAction

from spark_sink.lake.delta_log_reader import TransactionLog, lasting
from spark_sink.lake.delta_transaction import commit
from spark_sink.lake.positions_in_delta_log import rewound
from spark_sink.ranges.batch_offset import TopicPartition

KIND = "rewind"
NOTE: Mapping[str, object] = {"kind": KIND, "rows": 0}
CHANGED = "quarantine"  # in the note of a rewind: from which offset on it changed the quarantine, by partition


def set_numbers(
    handle: DeltaTable,
    group: str,
    numbers: Mapping[str, int],
    log: TransactionLog,
    changed: Mapping[TopicPartition, int] | None = None,
) -> None:
    """Set positions and the mark in one commit; nothing if no position, RESTORE or CREATE OR REPLACE TABLE asks for it.

    Args:
        handle: of the table, at the version that was read.
        group: the consumer group.
        numbers: to set, by application id.
        log: of the table, at the same version.
        changed: from which offset on the rewind changed the quarantine, by partition.

    Raises:
        CommitFailedError: another writer committed since the version that was read.
    """
    if not numbers and max(log.restored, log.replaced) <= log.transactions.get(rewound(group), -1):
        return
    note = {**NOTE, CHANGED: [[*key, at] for key, at in sorted((changed or {}).items())]}
    commit_positions(handle, {**numbers, rewound(group): handle.version()}, note)


def commit_positions(
    handle: DeltaTable, numbers: Mapping[str, int], note: Mapping[str, object], files: Sequence[AddAction] = ()
) -> None:
    """Commit application transactions and files on top of the version that was read.

    Raises:
        CommitFailedError: another writer committed since.
    """
    # Without retries: a commit after the rows were read must make this one fail.
    commit(handle, files, [lasting(name, number) for name, number in numbers.items()], note, retries=0)
