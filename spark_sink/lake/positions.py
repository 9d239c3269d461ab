"""How far a group has come in a table: the next offset by partition, kept in the Delta log beside the rows.

Application id `<group>/<topic>/<partition>`, version = exclusive end offset, no `lastUpdated`, so that no retention
forgets it. `<group>/<topic>/<partition>/begin` keeps where the group began, so that a hole before the first row is
still a hole for `azimuth verify`.
"""

import json
import threading
from collections.abc import Mapping

import pyarrow.fs as pa_fs

from spark_sink.errors import OptionError
from spark_sink.lake.delta_transactions import TransactionLog
from spark_sink.lake.table_storage import PLACEHOLDER, Storage, filesystem, table_uri
from spark_sink.ranges.batch_offset import TopicPartition

_BEGIN = "begin"
_IDENTITY = "identity"
_QUARANTINED = "quarantined"
REWOUND = "azimuth/rewound"  # the version that the newest rewind saw; a RESTORE up to there is dealt with
_LOCK = threading.Lock()
_LOGS: dict[tuple[str, tuple[tuple[str, str], ...]], TransactionLog] = {}


def application(group: str, key: TopicPartition) -> str:
    """The application id that carries the position of one partition."""
    return f"{group}/{key.topic}/{key.partition}"


def beginning(group: str, key: TopicPartition) -> str:
    """The application id that carries where the group began to read one partition."""
    return f"{application(group, key)}/{_BEGIN}"


def identity(group: str, topic: str) -> str:
    """The application id that says which topic of this name the table's rows are of."""
    return f"{group}/{topic}/{_IDENTITY}"


def quarantined(group: str, key: TopicPartition) -> str:
    """The application id of the table's next offset after the newest commit that named bad rows of a partition."""
    return f"{application(group, key)}/{_QUARANTINED}"


def replays(group: str) -> str:
    """The application id that counts replays from the quarantine, so that two of them at once are noticed."""
    return f"{group}/replay"


def parse_positions(transactions: Mapping[str, int], group: str) -> dict[TopicPartition, int]:
    """The positions of one group among all transactions of a table."""
    return {
        TopicPartition(parts[0], int(parts[1])): version
        for parts, version in _of_group(transactions, group)
        if len(parts) == 2 and parts[1].isdecimal()  # noqa: PLR2004 -- topic and partition
    }


def parse_beginnings(transactions: Mapping[str, int], group: str) -> dict[TopicPartition, int]:
    """Where one group began, by partition."""
    return _parse_named(transactions, group, _BEGIN)


def parse_quarantined(transactions: Mapping[str, int], group: str) -> dict[TopicPartition, int]:
    """The next offset after the newest commit that named bad rows, by partition."""
    return _parse_named(transactions, group, _QUARANTINED)


def parse_identities(transactions: Mapping[str, int], group: str) -> dict[str, int]:
    """Which topic of each name a group has written here, as a number made of the topic's id."""
    return {parts[0]: version for parts, version in _of_group(transactions, group) if parts[1:] == [_IDENTITY]}


def groups(transactions: Mapping[str, int]) -> list[str]:
    """Every group that has a position in the table, sorted. Topic names have no slash, group names may."""
    found = (name.rsplit("/", 2) for name in transactions)
    return sorted({parts[0] for parts in found if len(parts) == 3 and parts[2].isdecimal()})  # noqa: PLR2004 -- group, topic, partition


def positions(table: str, group: str, storage_options: Storage | None = None) -> dict[TopicPartition, int]:
    """Read how far a group has come in a table. The Delta log is the truth; Kafka's offsets are hints.

    Args:
        table: address of the table: a folder, `file:`, `s3://`, `gs://`, `abfss://`. With `{topic}` in it, of the table
            of each topic; a JSON list of addresses where topics are routed to several tables.
        group: the consumer group.
        storage_options: options of the object store, as deltalake takes them.

    Returns:
        The next offset by (topic, partition); nothing where the table does not exist.

    Raises:
        TableError: the log of a table cannot be read.
    """
    found: dict[TopicPartition, int] = {}
    for address in json.loads(table) if table.startswith("[") else [table]:
        for uri, topic in existing(address, storage_options):
            for key, at in parse_positions(transactions(uri, storage_options), group).items():
                if topic in {None, key.topic}:
                    found[key] = max(at, found.get(key, at))
    return found


def existing(address: str, storage: Storage | None) -> list[tuple[str, str | None]]:
    """The tables that an address stands for, each with its topic where the address has a place for one.

    Raises:
        OptionError: the place is not in the last part of the address.
    """
    if PLACEHOLDER not in address:
        return [(address, None)]
    *parents, name = table_uri(address).split("/")
    base = "/".join(parents)
    if PLACEHOLDER in base:
        raise OptionError(f"{address}: {PLACEHOLDER} can stand in the last part of an address only")
    before, _, after = name.partition(PLACEHOLDER)
    folders = filesystem(base, storage).get_file_info(pa_fs.FileSelector("", allow_not_found=True))
    names = [one.base_name for one in folders if one.type == pa_fs.FileType.Directory]
    return [
        (f"{base}/{one}", one[len(before) : len(one) - len(after)])
        for one in names
        if one.startswith(before) and one.endswith(after) and len(one) > len(before) + len(after)
    ]


def transactions(table: str, storage_options: Storage | None = None) -> dict[str, int]:
    """Read all application transactions of a table; a second look reads only what was committed since."""
    uri = table_uri(table)
    key = uri, tuple(sorted((storage_options or {}).items()))
    with _LOCK:
        log = _LOGS.setdefault(key, TransactionLog(uri, storage_options))
        return dict(log.refresh())


def _parse_named(transactions: Mapping[str, int], group: str, name: str) -> dict[TopicPartition, int]:
    return {
        TopicPartition(parts[0], int(parts[1])): version
        for parts, version in _of_group(transactions, group)
        if parts[2:] == [name] and parts[1].isdecimal()
    }


def _of_group(transactions: Mapping[str, int], group: str) -> list[tuple[list[str], int]]:
    prefix = f"{group}/"
    return [(name[len(prefix) :].split("/"), at) for name, at in transactions.items() if name.startswith(prefix)]
