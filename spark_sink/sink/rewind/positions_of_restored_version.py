"""Positions that belong to the rows of a table after a RESTORE: those of the version that it brought back.

A position is not always the offset after the last row: the newest records of a partition may be in the quarantine.
With the position of the version that came back they stay there, even if Kafka no longer has them.
"""

import math
from collections.abc import Callable, Mapping

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_sink.errors import TableError
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.fenced_replacement import active_paths
from spark_sink.lake.positions_in_delta_log import groups, parse_positions, rewound
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import is_delta_table
from spark_sink.ranges.batch_offset import TopicPartition

Target = Callable[[int], int]


def lineage_positions(
    log: TransactionLog, group: str, handle: DeltaTable, storage: Storage | None, target: Target
) -> dict[TopicPartition, int]:
    """Find the positions of the version that the RESTOREs since the last rewind brought back.

    Args:
        log: of the table, at the version that was read.
        group: the consumer group.
        handle: of the table, at the same version.
        storage: options of the object store.
        target: returns the version that a RESTORE brought back, for a RESTORE that does not name it.

    Returns:
        Positions; empty without such a RESTORE, if that version cannot be read any more, or if its positions say
        nothing of the rows: another writer has since removed a file of it, or it comes after a CREATE OR REPLACE TABLE
        that no rewind had resolved.
    """
    version = _brought_back(log, group, target)
    if version is None:
        return {}
    try:
        present = active_paths(handle)
        while True:
            past = DeltaTable(log.uri, version=version, storage_options=dict(storage or {}) or None)
            if not active_paths(past) <= present:
                return {}
            earlier = TransactionLog(log.uri, storage)
            kept = dict(earlier.refresh(version))
            if earlier.replaced > max(earlier.restored, kept.get(rewound(group), -1)):
                return {}
            # That version may itself come after a RESTORE that no rewind had resolved.
            before = _brought_back(earlier, group, target)
            if before is None:
                return parse_positions(kept, group)
            version = before
    except (TableError, DeltaError, OSError):
        return {}


def past_bad_records(
    quarantine: str, group: str, storage: Storage | None, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Find where the bad records end that follow the rows without a gap: they need not be read again.

    Args:
        quarantine: its address.
        group: the consumer group.
        storage: options of the object store.
        ends: the end of the rows, by partition.

    Returns:
        The ends after these bad records, of the partitions that have some; empty if several groups write the
        quarantine, because its records do not say whose they are.
    """
    options = dict(storage or {}) or None
    if not is_delta_table(quarantine, storage):
        return {}
    handle = DeltaTable(quarantine, storage_options=options)
    kept = TransactionLog(quarantine, storage).refresh(handle.version())
    if groups(kept) != [group]:
        return {}
    later: dict[TopicPartition, list[int]] = {}
    for batch in handle.to_pyarrow_dataset().to_batches(columns=["topic", "partition", "offset"]):
        for topic, partition, offset in zip(*batch.to_pydict().values(), strict=True):
            key = TopicPartition(topic, partition)
            if offset >= ends.get(key, math.inf):
                later.setdefault(key, []).append(offset)
    found: dict[TopicPartition, int] = {}
    for key, offsets in later.items():
        for offset in sorted(offsets):
            if offset == found.get(key, ends[key]):
                found[key] = offset + 1
    return found


def _brought_back(log: TransactionLog, group: str, target: Target) -> int | None:
    found, at = log.transactions, log.restored
    if at <= found.get(rewound(group), -1):
        return None
    entry = log.entry(at)
    named = None if entry is None else entry.brought_back(target)
    return target(at) if named is None else named
