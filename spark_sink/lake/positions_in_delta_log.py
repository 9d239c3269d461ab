"""The positions of a group in a table: the next offset of each partition, stored in the Delta log with the rows.

The application id is `<group>/<topic>/<partition>`, its version the exclusive end offset. Its `lastUpdated` is in the
far future, so that no retention removes it. `<group>/<topic>/<partition>/begin` stores the first offset of the group,
so that `azimuth verify` finds a hole before the first row.
"""

import threading
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_sink.errors import OptionError
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.iceberg.matching_names import tables_of_topics
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.newest_commits import newest_of_tables
from spark_sink.lake.table_addresses import (
    CLUSTER,
    PLACEHOLDER,
    Storage,
    is_iceberg,
    table_uri,
    with_name,
)
from spark_sink.lake.table_storage import filesystem, folders_in, listing
from spark_sink.options.option_texts import addresses
from spark_sink.ranges.batch_offset import TopicPartition

_BEGIN = "begin"
_IDENTITY = "identity"
_QUARANTINED = "quarantined"
_WRITE = "write"
_QUERY = "q"  # a topic may be called `write`, and its partitions are numbers
_LOCK = threading.Lock()
_THREADS = 16


@dataclass(frozen=True, slots=True)
class _SharedLog:
    log: TransactionLog
    lock: threading.Lock = field(default_factory=threading.Lock)


_LOGS: dict[tuple[str, tuple[tuple[str, str], ...]], _SharedLog] = {}


def application(group: str, key: TopicPartition) -> str:
    """Return the application id of the position of one partition."""
    return f"{group}/{key.topic}/{key.partition}"


def beginning(group: str, key: TopicPartition) -> str:
    """Return the application id of the offset at which the group began one partition."""
    return f"{application(group, key)}/{_BEGIN}"


def identity(group: str, topic: str) -> str:
    """Return the application id that identifies the topic of this name in the table's rows."""
    return f"{group}/{topic}/{_IDENTITY}"


def quarantined(group: str, key: TopicPartition) -> str:
    """Return the application id of the next offset after the newest commit that named bad rows of a partition."""
    return f"{application(group, key)}/{_QUARANTINED}"


def replays(group: str) -> str:
    """Return the application id that counts replays from the quarantine, so that concurrent replays conflict."""
    return f"{group}/replay"


def rewound(group: str) -> str:
    """Return the application id of the version that the group's newest rewind saw; earlier RESTOREs are resolved."""
    return f"{group}/rewound"


def batch_write(group: str, query: str) -> str:
    """Return the application id of the last batch write of a query in `foreachBatch`."""
    return f"{group}/{_WRITE}/{_QUERY}{query}"


@dataclass(frozen=True, slots=True)
class GroupTransactions:
    """What the transactions of a table hold of one group.

    Attributes:
        positions: the next offset, by partition.
        beginnings: the offset at which the group began, by partition.
        quarantined: the next offset after the newest commit that named bad rows, by partition.
        identities: identity of each topic that the group has written here, as a number from the topic's id.
        writes: number of the last batch write of each query.
    """

    positions: dict[TopicPartition, int] = field(default_factory=dict)
    beginnings: dict[TopicPartition, int] = field(default_factory=dict)
    quarantined: dict[TopicPartition, int] = field(default_factory=dict)
    identities: dict[str, int] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)


def parse_group(transactions: Mapping[str, int], group: str) -> GroupTransactions:
    """Return what all transactions of a table hold of one group."""
    found = GroupTransactions()
    by_partition = {_BEGIN: found.beginnings, _QUARANTINED: found.quarantined}
    prefix = f"{group}/"
    for name, version in transactions.items():
        if not name.startswith(prefix):
            continue
        match name[len(prefix) :].split("/"):
            case [topic, number] if number.isdecimal():
                found.positions[TopicPartition(topic, int(number))] = version
            case [topic, number, kind] if kind in by_partition and number.isdecimal():
                by_partition[kind][TopicPartition(topic, int(number))] = version
            case [topic, kind] if kind == _IDENTITY:
                found.identities[topic] = version
            case [kind, query] if kind == _WRITE and query.startswith(_QUERY):
                found.writes[query.removeprefix(_QUERY)] = version
    return found


def parse_positions(transactions: Mapping[str, int], group: str) -> dict[TopicPartition, int]:
    """Return the positions of one group from all transactions of a table."""
    return parse_group(transactions, group).positions


def groups(transactions: Mapping[str, int]) -> list[str]:
    """Return every group with a position in the table, sorted. Topic names have no slash, but group names may."""
    found = (name.rsplit("/", 2) for name in transactions)
    return sorted({parts[0] for parts in found if len(parts) == 3 and parts[2].isdecimal()})  # noqa: PLR2004 -- group, topic, partition


def positions(
    table: str,
    group: str,
    storage_options: Storage | None = None,
    *,
    partitions: Collection[TopicPartition] | None = None,
) -> dict[TopicPartition, int]:
    """Read the positions of a group in a table. The Delta log is authoritative; Kafka's offsets are hints.

    Args:
        table: address of the table: a folder, `file:`, `s3://`, `gs://`, `abfss://`. With `{topic}` in it, it means the
            table of each topic. If topics are routed to several tables, it is a JSON list of addresses. An Iceberg
            table is `iceberg://catalog.namespace.table`.
        group: the consumer group.
        storage_options: options of the object store, with deltalake's names, and of the catalog, with pyiceberg's names
            after `catalog.`.
        partitions: those whose positions are needed, others may be missing; None for all. Only the tables of their
            topics are read, and of a Delta log the newest commits, if these have all of them. Usually an object store
            gets two requests a table, a listing and a read of the newest commit.

    Returns:
        The next offset by (topic, partition); empty if the table does not exist. Tables are read concurrently.

    Raises:
        TableError: the log of a table cannot be read.
    """
    named = addresses(table, "table")
    asked = [one for address in named for one in _tables(address, storage_options, partitions)]
    if len(named) > 1:  # each has the positions of some topics only
        asked = [one._replace(wanted=frozenset()) for one in asked]
    storage = storage_options or {}
    wanted = {one.name: one.names(group) for one in asked if one.wanted and not is_iceberg(one.name)}
    newest = newest_of_tables(wanted, storage, _THREADS)
    found: dict[TopicPartition, int] = {}
    with ThreadPoolExecutor(max(1, min(_THREADS, len(asked))), thread_name_prefix="positions") as pool:
        # One table needs no thread, and schedules of tests follow the caller's thread only.
        parts = (pool.map if len(asked) > 1 else map)(
            lambda one: _of_table(one, group, storage, newest.get(one.name)), asked
        )
        for part in parts:
            for key, at in part.items():
                found[key] = max(at, found.get(key, at))
    return found


class _Table(NamedTuple):
    """A table whose positions are read.

    Attributes:
        name: its address.
        pattern: of the tables, with `{topic}` if each topic has one.
        wanted: partitions whose positions are needed; empty for all of the table.
    """

    name: str
    pattern: str
    wanted: frozenset[TopicPartition] = frozenset()

    def names(self, group: str) -> set[str]:
        """Return the application ids of the positions that are needed."""
        return {application(group, key) for key in self.wanted}


def _tables(address: str, storage: Storage | None, partitions: Collection[TopicPartition] | None) -> list[_Table]:
    pattern = address if is_iceberg(address) else table_uri(address)
    if PLACEHOLDER not in address:
        return [_Table(pattern, pattern, frozenset(partitions or ()))]
    if partitions is None or CLUSTER in address:
        return [_Table(one, pattern) for one, _ in existing(address, storage)]
    by_name: dict[str, set[TopicPartition]] = {}
    for key in partitions:
        by_name.setdefault(with_name(pattern, PLACEHOLDER, key.topic), set()).add(key)
    return [_Table(name, pattern, frozenset(keys)) for name, keys in sorted(by_name.items())]


def _of_table(one: _Table, group: str, storage: Storage, newest: Mapping[str, int] | None) -> dict[TopicPartition, int]:
    """Return the positions of one table, without those of topics whose table is another one.

    Args:
        one: the table.
        group: the consumer group.
        storage: options of the object store.
        newest: transactions of its newest commits, if these have all that is needed.
    """
    if is_iceberg(one.name):
        table = open_stored(one.name, storage)
        state = table.state.groups.get(group) if table else None
        found = state.positions if state else {}
    else:
        found = parse_positions(transactions(one.name, storage) if newest is None else newest, group)
    if PLACEHOLDER not in one.pattern:
        return dict(found)
    return {key: at for key, at in found.items() if with_name(one.pattern, PLACEHOLDER, key.topic) == one.name}


def existing(address: str, storage: Storage | None) -> list[tuple[str, str | None]]:
    """Return the tables of an address, each with its topic if the address contains `{topic}`.

    For Iceberg it is the topic as the table's name has it, see `with_name`.

    Raises:
        OptionError: `{topic}` is not in the last part of the address.
        TableError: the folders at the address cannot be listed.
    """
    if PLACEHOLDER not in address:
        return [(address, None)]
    if is_iceberg(address):
        return list(tables_of_topics(address, storage or {}))
    *parents, name = table_uri(address).split("/")
    base = "/".join(parents)
    if PLACEHOLDER in base:
        raise OptionError(f"{address}: {PLACEHOLDER} can stand in the last part of an address only")
    before, _, after = name.partition(PLACEHOLDER)
    with listing(base):
        names = folders_in(filesystem(base, storage))
    return [
        (f"{base}/{one}", one[len(before) : len(one) - len(after)])
        for one in names
        if one.startswith(before) and one.endswith(after) and len(one) > len(before) + len(after)
    ]


def transactions(table: str, storage_options: Storage | None = None) -> dict[str, int]:
    """Read all application transactions of a table; later calls read only new commits."""
    with _shared_log(table, storage_options) as log:
        return dict(log.refresh())


@contextmanager
def _shared_log(table: str, storage: Storage | None) -> Iterator[TransactionLog]:
    """Yield the log of a table that this process keeps, to one thread at a time."""
    uri = table_uri(table)
    key = uri, tuple(sorted((storage or {}).items()))
    with _LOCK:
        shared = _LOGS.get(key)
        if shared is None:
            shared = _LOGS.setdefault(key, _SharedLog(TransactionLog(uri, storage, operations=False)))
    with shared.lock:
        yield shared.log
