"""Reads the bad rows that the commits of a table name from its log.

This is needed only if a writer died between the commit of a table and that of its quarantine.
"""

from collections.abc import Iterable, Mapping

from spark_sink.errors import TableError
from spark_sink.formats.quarantined_rows import quarantine_of
from spark_sink.lake.delta_transactions import TransactionLog
from spark_sink.lake.file_descriptions import parse_quarantined
from spark_sink.lake.positions import parse_quarantined as parse_ends
from spark_sink.lake.table_contract import Quarantined
from spark_sink.ranges.batch_offset import TopicPartition


def named_quarantine(
    uri: str,
    log: TransactionLog,
    group: str,
    asked: Iterable[TopicPartition],
    held: Mapping[TopicPartition, int],
) -> list[Quarantined]:
    """Read the bad rows that commits up to the log's version named and the quarantine lacks.

    Args:
        uri: address of the table, for messages.
        log: log of the table.
        group: the consumer group.
        asked: the requested partitions.
        held: position of the quarantine, for every partition that it knows.

    Returns:
        Oldest first. If a commit names bad rows of several partitions, all of them are returned, and so are the earlier
        commits that named bad rows of these partitions.

    Raises:
        TableError: a commit that named some was cleaned up.
    """
    ends = parse_ends(log.transactions, group)
    # The next commit to find, by partition: each commit names the previous one.
    wanted = {key: end for key in asked if (end := ends.get(key, 0)) > held.get(key, 0)}
    found: list[Quarantined] = []
    if not wanted:
        return found
    for entry in log.earlier_commits():
        named = entry.note.get("quarantined")
        if named is None or named["group"] != group:
            continue
        one = parse_quarantined(named)
        if not any(wanted.get(key) == end for key, end in one.ends.items()):
            continue
        found.append(one)
        for key in one.ends:
            before = one.before.get(key, 0)
            wanted[key] = before if before > held.get(key, 0) else 0
        if not any(wanted.values()):
            return found[::-1]
    key, end = next((key, end) for key, end in sorted(wanted.items()) if end)
    raise TableError(
        f"{uri}: the bad records of {key.topic}/{key.partition} up to offset {end} are not in {quarantine_of(uri)}, "
        "and the commit that names their files was cleaned up from the log. Restore that log entry from a backup, or "
        "set the positions back with `azimuth rewind TABLE`"
    )
