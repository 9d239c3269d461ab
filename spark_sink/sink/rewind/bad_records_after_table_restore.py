"""Brings bad records back that an earlier rewind removed from the quarantine, after a RESTORE to before that rewind.

A RESTORE of the table brings its rows back, but the quarantine has its own log. Rows from before a rewind were decoded
together with bad records that the rewind removed, and that may be other records than those that are bad now:

    commit    rows 0, 2; bad 1        quarantine 1
    RESTORE   rows -
    rewind    position 0              quarantine -
    commit    rows 0, 1; bad 2        quarantine 2
    RESTORE   rows 0, 2               needs 1, not 2

The commits of the table still name the files of those records.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable

from spark_sink.errors import TableError, plain
from spark_sink.formats.bad_values_quarantined import SCHEMA
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_log_reader import OURS, LogEntry
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.positions_in_delta_log import parse_positions, rewound
from spark_sink.lake.quarantine_reader import file_records
from spark_sink.lake.row_offsets import above
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_contract import Change, DataFile
from spark_sink.lake.table_storage import filesystem
from spark_sink.lake.unwritten_quarantine import noted_quarantine
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.rewind.rewind_commit import CHANGED, NOTE

Ends = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Bad records that belong to the rows of a table again.

    Attributes:
        floors: lowest offset that an earlier rewind removed, by partition.
        files: files of the quarantine that have them, each with the end of its records by partition (exclusive).
    """

    floors: Ends = field(default_factory=dict)
    files: Sequence[tuple[DataFile, Ends]] = ()


def find_removed(
    uri: str, entries: Iterable[LogEntry], group: str, ends: Ends, target: Callable[[int], int]
) -> Removed:
    """Find bad records that an earlier rewind removed, although they belong to the rows of the table.

    Only needed for a group that was rewound before. Pure.

    Args:
        uri: address of the table, for messages.
        entries: the log of the table, newest first, as far as it can be read.
        group: the consumer group.
        ends: the end of the rows, by partition.
        target: returns the version that a RESTORE brought back, for a RESTORE that does not name it.

    Raises:
        TableError: the commits that name them are no longer in the log.
    """
    past = _Past(uri, group, dict(ends))
    oldest = 0
    for entry in entries:
        oldest = entry.version
        if entry.version > past.lineage:
            past.note_undone(entry)
        else:
            past.note_made(entry, target)
        if past.complete:
            break
    else:
        # Rewinds before the oldest commit may be undone as well, if the rows were made before it.
        if oldest and (past.unread or (past.lineage < oldest and not past.rewound)):
            raise TableError(
                f"{uri}: a RESTORE went back to before an earlier `azimuth rewind`, which removed bad records from "
                f"the quarantine, and the commits that name them were cleaned up from the log; nothing was changed. "
                f"{_way_out(past.floors)}"
            )
    return Removed(floors=past.floors, files=past.overlapping())


@dataclass
class _Past:
    """The commits that made the rows of a table, and the rewinds that a later RESTORE undid.

    Attributes:
        uri: address of the table, for messages.
        group: the consumer group.
        ends: end of the rows that commits not yet seen have made, by partition.
        lineage: the version at which those commits end.
        rewound: a rewind is among the commits that made the rows: since then, the quarantine fits them.
        floors: the lowest offset that an undone rewind has removed, by partition.
        reached: first offset of the rows that the commits seen so far have written.
        files: that these commits name, with the end of their records.
    """

    uri: str
    group: str
    ends: dict[TopicPartition, int]
    lineage: float = math.inf
    rewound: bool = False
    floors: dict[TopicPartition, int] = field(default_factory=dict)
    reached: dict[TopicPartition, int] = field(default_factory=dict)
    files: list[tuple[DataFile, Ends]] = field(default_factory=list)

    @property
    def unread(self) -> bool:
        """Whether older commits have made rows at or above the floors."""
        return any(self.reached.get(key, math.inf) > at for key, at in self.floors.items())

    @property
    def complete(self) -> bool:
        """Whether older commits no longer matter."""
        return self.rewound and not self.unread

    def note_undone(self, entry: LogEntry) -> None:
        """Process a commit whose rows a later RESTORE removed."""
        if self.rewound or not _is_rewind(entry, self.group):
            return
        for key, at in _changed_from(entry, self.group).items():
            if at < self.ends.get(key, 0):
                self.floors[key] = min(at, self.floors.get(key, at))

    def note_made(self, entry: LogEntry, target: Callable[[int], int]) -> None:
        """Process a commit that has made rows."""
        if (version := entry.brought_back(target)) is not None:
            self.lineage = version
        named = noted_quarantine(self.uri, entry, self.group)
        if named is not None:
            self.files += [(file, dict(self.ends)) for file in named.files]
        positions = parse_positions(entry.transactions, self.group)
        self.reached |= {key: min(at, self.reached.get(key, at)) for key, at in positions.items()}
        if _is_rewind(entry, self.group):
            self.rewound = True
            self.ends |= {key: min(at, self.ends.get(key, at)) for key, at in positions.items()}

    def overlapping(self) -> list[tuple[DataFile, Ends]]:
        """Return the files with records at or above the floors."""
        return [
            (file, ends)
            for file, ends in self.files
            if any(self.floors.get(key, math.inf) <= span.last for key, span in file.spans.items())
        ]


def _is_rewind(entry: LogEntry, group: str) -> bool:
    if entry.note.get("kind") != "rewind":
        return False
    return rewound(group) in entry.transactions or bool(parse_positions(entry.transactions, group))


def _changed_from(entry: LogEntry, group: str) -> Ends:
    """Return the lowest offset from which on a rewind has changed the quarantine, by partition."""
    noted = {TopicPartition(topic, number): at for topic, number, at in entry.note.get(CHANGED, ())}
    return {**parse_positions(entry.transactions, group), **noted}


def bring_back(uri: str, group: str, removed: Removed, storage: Storage | None) -> None:
    """Replace the records of the quarantine from the floors on. A repetition after a crash gives the same.

    Raises:
        TableError: a file is gone, or the storage refused.
    """
    if not removed.floors:
        return
    address, options = quarantine_of(uri), dict(storage or {}) or None
    files = _land(uri, removed, storage)
    quarantine = DeltaLakeTable(address, group, storage)  # a RESTORE since it was put back is refused
    if quarantine.refresh() is None:
        quarantine.create(SCHEMA)
    DeltaTable(address, storage_options=options).delete(
        from_offsets(removed.floors), commit_properties=CommitProperties(custom_metadata={OURS: dict(NOTE)})
    )
    snapshot = quarantine.refresh()
    if snapshot is not None and files:
        # A later rewind removes the records that are above the table by the quarantine's position.
        ends = {key: max(snapshot.positions.get(key, 0), at) for key, at in _ends_of(files).items()}
        quarantine.swap(snapshot, Change(files=files, positions=ends, beginnings={}, schema=SCHEMA, note=NOTE))


def _ends_of(files: Iterable[DataFile]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for file in files:
        for key, span in file.spans.items():
            found[key] = max(span.last + 1, found.get(key, 0))
    return found


def from_offsets(floors: Ends) -> str:
    """Return the SQL predicate of the rows at or above an offset of their partition."""
    return " OR ".join(
        f'(topic = \'{key.topic}\' AND "partition" = {key.partition} AND "offset" >= {at})'
        for key, at in sorted(floors.items())
    )


def _land(uri: str, removed: Removed, storage: Storage | None) -> list[DataFile]:
    address = quarantine_of(uri)
    landing = Landing(filesystem(address, storage), SCHEMA)
    try:
        for file, ends in removed.files:
            for batch in file_records(address, file, storage):
                rows = pa.Table.from_batches([batch])
                rows = rows.filter(above(rows, removed.floors))
                rows = rows.filter(pc.invert(above(rows, ends)))
                for one in rows.to_batches():
                    landing.write(one)
    except (TableError, OSError) as error:
        raise TableError(
            f"{uri}: a RESTORE went back to before an earlier `azimuth rewind`, which removed bad records from the "
            f"quarantine, and they cannot be read from its former files ({plain(error)}); nothing was changed. "
            f"{_way_out(removed.floors)}"
        ) from error
    return landing.close()


def _way_out(floors: Ends) -> str:
    if not floors:
        return "RESTORE a version after that rewind, and run the command again"
    places = ", ".join(f"{key.topic}/{key.partition} from offset {at} on" for key, at in sorted(floors.items()))
    return f"Delete the rows of {places}, and run the command again: the agents then read these records again"
