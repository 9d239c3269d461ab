"""Reads the bad rows that the commits of a table name from its log.

This is needed only if a writer died between the commit of a table and that of its quarantine.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyarrow import fs as pa_fs

from spark_sink.errors import TableError
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_log_reader import LogEntry, TransactionLog
from spark_sink.lake.file_descriptions import parse_quarantined
from spark_sink.lake.parquet_landing import storage_errors
from spark_sink.lake.positions_in_delta_log import parse_group
from spark_sink.lake.table_contract import LostRecordsError, Quarantined
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import TopicPartition

_REWIND = (
    "or give these records up with `azimuth rewind TABLE --apply`, after which `azimuth verify` lists their offsets"
)


def named_quarantine(
    log: TransactionLog, group: str, asked: Iterable[TopicPartition], held: Mapping[TopicPartition, int]
) -> list[Quarantined]:
    """Read the bad rows that commits up to the log's version named and the quarantine lacks.

    Args:
        log: log of the table.
        group: the consumer group.
        asked: the requested partitions.
        held: position of the quarantine, for every partition that it knows.

    Returns:
        Oldest first. If a commit names bad rows of several partitions, all of them are returned, and so are the earlier
        commits that named bad rows of these partitions.

    Raises:
        LostRecordsError: a commit that named some was cleaned up, or their files are gone.
        TableError: a commit names some in an unknown form.
    """
    ends = parse_group(log.transactions, group).quarantined
    # The next commit to find, by partition: each commit names the previous one.
    wanted = {key: end for key in asked if (end := ends.get(key, 0)) > held.get(key, 0)}
    found: list[Quarantined] = []
    if not wanted:
        return found
    for entry in log.earlier_commits():
        one = noted_quarantine(log.uri, entry, group)
        if one is None or not any(wanted.get(key) == end for key, end in one.ends.items()):
            continue
        found.append(one)
        for key in one.ends:
            before = one.before.get(key, 0)
            wanted[key] = before if before > held.get(key, 0) else 0
        if not any(wanted.values()):
            return _with_files(log, found[::-1])
    key, end = next((key, end) for key, end in sorted(wanted.items()) if end)
    oldest = Quarantined(files=[], ends={key: end for key, end in wanted.items() if end})
    raise LostRecordsError(
        f"{log.uri}: the bad records of {key.topic}/{key.partition} up to offset {end} are not in "
        f"{quarantine_of(log.uri)}, and the commit that names their files was cleaned up from the log. Restore that "
        f"log entry from a backup, {_REWIND}",
        [oldest, *_without(found[::-1], _gone(log, found))],
    )


def noted_quarantine(uri: str, entry: LogEntry, group: str) -> Quarantined | None:
    """Read the bad rows of a group that one commit of a table names; None for none.

    Raises:
        TableError: it names them in another form than this sink.
    """
    named = entry.note.get("quarantined")
    if named is None:
        return None
    try:
        if named["group"] != group:
            return None
        return parse_quarantined(named)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TableError(
            f"{uri}: commit {entry.version} names bad records in an unknown form, so it is unknown whether some are "
            f"missing in {quarantine_of(uri)}: did another program write `kafka-azimuth` into the log, or change this "
            "entry? Restore that log entry from a backup"
        ) from error


def _with_files(log: TransactionLog, found: list[Quarantined]) -> list[Quarantined]:
    """Refuse commits whose files are gone: with them in it the quarantine could not be read."""
    gone = _gone(log, found)
    if not gone:
        return found
    rows = sum(file.rows for one in found for file in one.files if file.path in gone)
    raise LostRecordsError(
        f"{log.uri}: {rows} bad records that its commits name are not in {quarantine_of(log.uri)}, and their files "
        f"are gone, such as {min(gone)}. Was the quarantine deleted? Put its folder back from a backup, {_REWIND}",
        _without(found, gone),
    )


def _gone(log: TransactionLog, found: Iterable[Quarantined]) -> set[str]:
    paths = [file.path for one in found for file in one.files]
    quarantine = quarantine_of(log.uri)
    with storage_errors(quarantine):
        infos = filesystem(quarantine, log.storage).get_file_info(paths) if paths else []
    return {path for path, info in zip(paths, infos, strict=True) if info.type == pa_fs.FileType.NotFound}


def _without(found: Iterable[Quarantined], gone: set[str]) -> list[Quarantined]:
    return [replace(one, files=[file for file in one.files if file.path not in gone]) for one in found]
