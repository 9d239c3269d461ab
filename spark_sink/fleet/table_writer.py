"""Writes the tables of one source: compare and swap by position, and the topic id of each name."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from assignors import hash64
from assignors.fleet import FleetTopic
from spark_sink.errors import ConflictError, SparkSinkError, TableError
from spark_sink.fleet.commit_counts import CommitCounts
from spark_sink.fleet.decode_and_commit import Committed, LandedFiles, WriterTable
from spark_sink.formats.quarantine_addresses import quarantine_of, refuse_quarantine_address, refuse_quarantine_name
from spark_sink.lake.ops_log.ops_counts import record_bytes
from spark_sink.lake.table_addresses import PLACEHOLDER, Storage, table_uri, with_name
from spark_sink.lake.table_contract import Change, Snapshot
from spark_sink.lake.table_formats import LakeTable
from spark_sink.options.option_spellings import spelled
from spark_sink.options.topic_decoders import TopicDecoders
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.batch_against_table import Verdict
from spark_sink.sink.commit_by_compare_and_swap import Batch
from spark_sink.sink.row_options import RowOptions
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.sink.topic_routes import Routes

log = logging.getLogger(__name__)

_TOPIC = "do not read this topic, or add a folder after {topic} in the address of the tables, as in lake/{topic}/rows"
_ATTEMPTS = 50
_COMPACT_EVERY, _COMPACT_AFTER = 200, 20  # versions of a table, commits of this agent

_Place = tuple[str, str]


class Compactions:
    """Compacts small files of tables in the background: one table at a time, and each by only one thread."""

    def __init__(self) -> None:
        self._commits: dict[str, int] = {}
        self._tables: dict[str, LakeTable] = {}
        self._thread: threading.Thread | None = None

    def committed(self, uri: str, table: Callable[[], LakeTable]) -> None:
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
        rows: how records become rows. A table of raw records that lacks the column `headers` gets it, and is null there
            for earlier rows; a table that has it takes rows without it, too.
        ops: counts the commits for an ops log; None without one.

    Raises:
        OptionError: the address is a quarantine's. If only that of one topic is, the calls about this topic raise it.
    """

    def __init__(  # noqa: PLR0913 -- what a table is
        self,
        address: str,
        group: str,
        agent: str,
        storage: Storage | None = None,
        *,
        rows: RowOptions | None = None,
        ops: CommitCounts | None = None,
    ) -> None:
        self._ops = ops
        self._address = table_uri(address)
        refuse_quarantine_address(self._address)
        self._rows = rows or RowOptions()
        self._options = SinkOptions(
            routes=Routes(default=self._address),
            group=group,
            checkpoint="",
            agent=agent,
            storage=dict(storage or {}),
            table=self._rows.table,
        )
        self._decoders = TopicDecoders(self._rows.value)
        self._tables: dict[_Place, WriterTable] = {}
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
        found: dict[_Place, set[str]] = {}
        for name in names:
            found.setdefault(self._place(name), set()).add(name)
        return list(found.values())

    def label(self, topics: Collection[FleetTopic]) -> dict[FleetTopic, str]:
        """Return the label of each topic in its table: its name, or `<name>@<topic id>` if the name is in use.

        A recreated topic begins at offset 0: under the old name its records would look like a replay. So the table
        stores the first topic id of each name, by compare and swap.

        Args:
            topics: of one table, as grouped by `apart`.

        Raises:
            OptionError, FetchError: the schema of the values is not known.
            TableError: the table cannot be read or written.
        """
        if not topics:
            return {}
        table = self._table(next(iter(topics)).name)
        with spelled(self._rows.spelling):
            columns = table.columns  # outside the lock, because a registry may be slow
        with self._lock, spelled(self._rows.spelling):
            known = self._register(table.table, columns, {topic.name: _number(topic) for topic in topics})
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
            snapshot = self._table(next(iter(labels))).table.refresh()
        return {key: at for key, at in (snapshot.positions if snapshot else {}).items() if key.topic in labels}

    def land(self, rows: Landable, labels: Collection[str]) -> LandedFiles:
        """Write files; readers of the table see them only after `commit`.

        Args:
            rows: the records of these labels are written.
            labels: of one table, as grouped by `apart`.

        Raises:
            OptionError, FetchError: the schema of the values is not known.
            TableError: the storage refuses, or the files have fewer or more rows than the records.
        """
        held = rows.rows(set(labels))
        table = self._table(next(iter(labels)))
        with spelled(self._rows.spelling):
            files = table.land(held)
        if files.rows != held.num_rows:
            # The commit states the whole range, so no position would show the loss of a row.
            raise TableError(
                f"{table.uri}: {held.num_rows} records were read and {files.rows} are in the files: writing them again"
            )
        return files if self._ops is None else replace(files, record_bytes=record_bytes(held))

    def commit(self, files: LandedFiles, ranges: Sequence[Range]) -> Committed:
        """Commit records to their table and its quarantine, each in one of them, whatever other agents do.

        Args:
            files: the files that `land` wrote for these ranges.
            ranges: ranges of one table.

        Raises:
            HoleError: records before these are missing.
            TableError: the table or its quarantine refuses them.
        """
        self._number += 1
        table = self._table(ranges[0].topic)
        batch = Batch(
            offset=Offset.of(ranges),
            files=files.good,
            bad=files.bad,
            schema=files.columns or table.columns,
            number=self._number,
            agent=self._options.agent,
        )
        with self._lock, spelled(self._rows.spelling):
            outcome = table.commit(batch)
            doubted = {key for key, verdict in outcome.verdicts.items() if verdict in {Verdict.SKIP, Verdict.TRIM}}
            snapshot = table.table.refresh() if doubted else None
        if self._ops is not None:
            self._ops.wrote(table.uri, files, outcome)
        if outcome.rows:
            self._compactions.committed(table.uri, table.handle)
        if outcome.quarantined is not None:
            self._compactions.committed(quarantine_of(table.uri), table.quarantine_handle)
        known = snapshot.positions if snapshot else {}
        return Committed.of(
            outcome, {one.key: known[one.key] for one in ranges if one.key in doubted and known[one.key] != one.end}
        )

    def _register(self, table: LakeTable, columns: pa.Schema, wanted: Mapping[str, int]) -> dict[str, int]:
        for attempt in range(_ATTEMPTS):
            # After a lost attempt a listing that is behind is awaited: it would lose all attempts within a second.
            snapshot = (table.newest() if attempt else table.refresh()) or table.begin(columns)
            new = {name: number for name, number in wanted.items() if name not in snapshot.identities}
            if not new:
                return {name: snapshot.identities[name] for name in wanted}
            if self._note(table, snapshot, columns, new):
                return {**snapshot.identities, **new}
        raise TableError(
            f"{table.name}: lost against other writers {_ATTEMPTS} times in a row; nothing is read of "
            f"{list(wanted)[:3]}"
        )

    def _note(self, table: LakeTable, snapshot: Snapshot, columns: pa.Schema, new: Mapping[str, int]) -> bool:
        note = {"agent": self._options.agent, "kind": "identities", "rows": 0}
        try:
            table.swap(
                snapshot,
                Change(files=(), positions={}, beginnings={}, schema=columns, note=note, identities=new),
            )
        except ConflictError:
            return False
        return True

    def _table(self, label: str) -> WriterTable:
        place = uri, topic = self._place(label)
        if place not in self._tables:
            refuse_quarantine_name(uri, f"topic {label!r}", _TOPIC)
            # Two threads may come here at the same time; one of the two objects, which have no handles yet, is dropped.
            named = topic or label.partition("@")[0]
            self._tables.setdefault(place, WriterTable(uri, self._options, self._rows, self._decoders, named))
        return self._tables[place]

    def _place(self, label: str) -> _Place:
        """Return the table of a label, and its topic if each topic has its own decoder and its own table.

        Names of Iceberg tables have no hyphens, so the topics `a-b` and `a_b` have one table, which both write.
        """
        return self._uri(label), "" if self.shared else label.partition("@")[0]

    def _uri(self, label: str) -> str:
        return with_name(self._address, PLACEHOLDER, label)


def _number(topic: FleetTopic) -> int:
    """Return the topic's identity as a number that a Delta log can store."""
    return hash64(topic.identity) >> 1
