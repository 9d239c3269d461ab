"""Writes the tables of one source: compare and swap by position, and the topic id of each name."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from assignors import hash64
from assignors.fleet import FleetTopic
from spark_sink.errors import ConflictError, SparkSinkError, TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.delta_table import DeltaLakeTable, TableSettings
from spark_sink.lake.parquet_landing import Landing, storage_errors
from spark_sink.lake.table_contract import Change, DataFile, Snapshot
from spark_sink.lake.table_storage import PLACEHOLDER, Storage, filesystem, table_uri
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.batch_against_table import Verdict
from spark_sink.sink.compare_and_swap import Batch, commit

log = logging.getLogger(__name__)

CLUSTER = "{cluster}"
_ATTEMPTS = 50
_COMPACT_EVERY, _COMPACT_AFTER = 200, 20  # versions of a table, commits of this agent


class Compactions:
    """Compacts small files of tables in the background: one table at a time, and each by only one thread."""

    def __init__(self) -> None:
        self._commits: dict[str, int] = {}
        self._tables: dict[str, DeltaLakeTable] = {}
        self._thread: threading.Thread | None = None

    def committed(self, uri: str, table: Callable[[], DeltaLakeTable]) -> None:
        """Count a commit; returns immediately.

        Args:
            uri: address of the table.
            table: creates a handle of it, at the first call.
        """
        count = self._commits[uri] = self._commits.get(uri, -1) + 1
        if count % _COMPACT_AFTER or (self._thread is not None and self._thread.is_alive()):
            return
        if uri not in self._tables:
            self._tables[uri] = table()
        # Not a daemon thread: the process waits for it, because otherwise others would wait for its claim to expire.
        self._thread = threading.Thread(target=self._compact, args=(uri,), name="fleet-compact")
        self._thread.start()

    def _compact(self, uri: str) -> None:
        try:
            self._tables[uri].refresh()
            self._tables[uri].compact(_COMPACT_EVERY)
        except (SparkSinkError, OSError) as error:
            log.info("fleet: %s: compaction left to the next time: %s", uri, error)


class Landable(Protocol):
    """Records that can be written: a `RecordBuffer`, or the batches of another reader."""

    def rows(self, only: set[str]) -> pa.Table:
        """Return the records of these labels, as Arrow, in the columns of the raw format."""


class TableWriter:
    """Writes one source's records. Each call except `apart` is about one table.

    One thread writes records; another may read labels and positions, and waits at most for a commit. A separate thread
    with its own table handle compacts small files, as if it were another agent.

    Args:
        address: address of the table; `{cluster}` in it stands for the source, `{topic}` for the topic.
        group: name of the positions in the tables.
        agent: name for the tables' history.
        storage: options of the object store.
        include_headers: whether rows have the column `headers`. A table that lacks it gets it, and is null there for
            earlier rows; a table that has it takes rows without it, too.
    """

    def __init__(
        self,
        address: str,
        group: str,
        agent: str,
        storage: Storage | None = None,
        *,
        include_headers: bool = False,
    ) -> None:
        self._address = table_uri(address)
        self._group = group
        self._agent = agent
        self._storage = dict(storage or {})
        self._schema = arrow_schema(headers=include_headers)
        self._settings = TableSettings(merge_schema=include_headers)
        self._tables: dict[str, DeltaLakeTable] = {}
        self._lock = threading.Lock()
        self._compactions = Compactions()
        self._number = 0

    @property
    def shared(self) -> bool:
        """Whether all topics are in one table."""
        return PLACEHOLDER not in self._address

    def addresses(self, names: Iterable[str]) -> set[str]:
        """Return the addresses of the tables of these topics."""
        return {self._uri(name) for name in names}

    def apart(self, names: Iterable[str]) -> list[set[str]]:
        """Group names of topics, or labels, by table."""
        found: dict[str, set[str]] = {}
        for name in names:
            found.setdefault(self._uri(name), set()).add(name)
        return list(found.values())

    def label(self, topics: Collection[FleetTopic]) -> dict[FleetTopic, str]:
        """Return the label of each topic in its table: its name, or `<name>@<topic id>` if the name is in use.

        A recreated topic begins at offset 0: under the old name its records would look like a replay. So the table
        stores the first topic id of each name, by compare and swap.

        Args:
            topics: of one table, as grouped by `apart`.

        Raises:
            TableError: the table cannot be read or written.
        """
        if not topics:
            return {}
        uri = self._uri(next(iter(topics)).name)
        with self._lock:
            known = self._register(uri, {topic.name: _number(topic) for topic in topics})
        return {
            topic: topic.name if known[topic.name] == _number(topic) else f"{topic.name}@{topic.printed_id}"
            for topic in topics
        }

    def positions(self, labels: Collection[str]) -> dict[TopicPartition, int]:
        """Return the positions in the table of these labels.

        Args:
            labels: of one table, as grouped by `apart`.

        Raises:
            TableError: the table cannot be read.
        """
        with self._lock:
            snapshot = self._table_of(labels).refresh()
        return {key: at for key, at in (snapshot.positions if snapshot else {}).items() if key.topic in labels}

    def land(self, rows: Landable, labels: Collection[str]) -> Sequence[DataFile]:
        """Write files; readers of the table see them only after `commit`.

        Args:
            rows: the records of these labels are written.
            labels: of one table, as grouped by `apart`.

        Raises:
            TableError: the storage refuses, or the files have fewer or more rows than the records.
        """
        uri = self._uri(next(iter(labels)))
        held = rows.rows(set(labels))
        with storage_errors(uri):
            landing = Landing(filesystem(uri, self._storage, make=True), self._schema)
        for batch in held.to_batches():
            landing.write(batch)
        files = landing.close()
        if (landed := sum(file.rows for file in files)) != held.num_rows:
            # The commit states the whole range, so no position would show the loss of a row.
            raise TableError(
                f"{uri}: {held.num_rows} records were read and {landed} are in the files: writing them again"
            )
        return files

    def commit(self, files: Sequence[DataFile], ranges: Sequence[Range]) -> dict[TopicPartition, int]:
        """Commit records to their table, each once, whatever other agents do.

        Args:
            files: the files that `land` wrote for these ranges.
            ranges: ranges of one table.

        Returns:
            The table's position, for ranges that do not end there, because another agent wrote, too.

        Raises:
            HoleError: records before these are missing.
            TableError: the table refuses them.
        """
        self._number += 1
        uri = self._uri(ranges[0].topic)
        batch = Batch(
            offset=Offset.of(ranges), files=files, schema=self._schema, number=self._number, agent=self._agent
        )
        with self._lock:
            table = self._table(uri)
            outcome = commit(table, batch)
            doubted = {key for key, verdict in outcome.verdicts.items() if verdict in {Verdict.SKIP, Verdict.TRIM}}
            snapshot = table.refresh() if doubted else None
        if outcome.rows:
            self._compactions.committed(uri, lambda: DeltaLakeTable(uri, self._group, self._storage, self._settings))
        known = snapshot.positions if snapshot else {}
        return {one.key: known[one.key] for one in ranges if one.key in doubted and known[one.key] != one.end}

    def _register(self, uri: str, wanted: Mapping[str, int]) -> dict[str, int]:
        table = self._table(uri)
        for _ in range(_ATTEMPTS):
            snapshot = table.refresh()
            if snapshot is None:
                table.create(self._schema)
                continue
            new = {name: number for name, number in wanted.items() if name not in snapshot.identities}
            if not new:
                return {name: snapshot.identities[name] for name in wanted}
            if self._note(table, snapshot, new):
                return {**snapshot.identities, **new}
        raise TableError(
            f"{uri}: lost against other writers {_ATTEMPTS} times in a row; nothing is read of {list(wanted)[:3]}"
        )

    def _note(self, table: DeltaLakeTable, snapshot: Snapshot, new: Mapping[str, int]) -> bool:
        note = {"agent": self._agent, "kind": "identities", "rows": 0}
        try:
            table.swap(
                snapshot,
                Change(files=(), positions={}, beginnings={}, schema=self._schema, note=note, identities=new),
            )
        except ConflictError:
            return False
        return True

    def _table_of(self, labels: Iterable[str]) -> DeltaLakeTable:
        return self._table(self._uri(next(iter(labels))))

    def _table(self, uri: str) -> DeltaLakeTable:
        if uri not in self._tables:
            self._tables[uri] = DeltaLakeTable(uri, self._group, self._storage, self._settings)
        return self._tables[uri]

    def _uri(self, label: str) -> str:
        return self._address.replace(PLACEHOLDER, label)


def _number(topic: FleetTopic) -> int:
    """Return the topic's identity as a number that a Delta log can store."""
    return hash64(topic.identity) >> 1
