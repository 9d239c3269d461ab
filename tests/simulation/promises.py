"""What must hold after every commit, and at the end of a schedule."""

from collections.abc import Mapping

from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.file_descriptions import parse_quarantined
from spark_sink.lake.positions_in_delta_log import groups, parse_group, parse_positions, rewound
from spark_sink.ranges.batch_offset import Offset
from tests.simulation.memory_store import Row, Store, Version
from tests.simulation.scheduler import BrokenPromiseError

GROUP = "g"


class Promises:
    """Follows the logs of one table and its quarantine, commit by commit.

    Args:
        store: of the tables.
        uri: of the table.
        tombstones: records without a value.
    """

    def __init__(self, store: Store, uri: str, tombstones: frozenset[Row]) -> None:
        self._store, self._uri, self._tombstones = store, uri, tombstones
        self._numbers: dict[str, int] = {}
        self._named: set[Row] = set()  # bad rows, as commits of the table name them
        self._replayed: set[Row] = set()
        self.restored = False  # rows were taken back, and no rewind has set the positions yet
        self._restores = 0
        self._bad_taken = False  # the same for bad records of the quarantine
        self._bad_restores = 0
        # A false alarm after two stale reads can lead a person to a rewind without a RESTORE. It sets a partition whose
        # last records are bad to the end of its rows, and they are read again.
        self._set_back = False

    @property
    def taken(self) -> bool:
        """Whether rows or bad records were taken back, and no rewind has come since."""
        return self.restored or self._bad_taken

    @property
    def positions(self) -> dict[int, int]:
        """The table's positions by partition number."""
        return {key.partition: at for key, at in parse_positions(self._numbers, GROUP).items()}

    def check_commit(self, uri: str, number: int) -> None:
        """Look at a table after a commit.

        Raises:
            BrokenPromiseError: a promise does not hold.
        """
        version = self._store.logs[uri].versions[number]
        if uri == self._uri:
            self._follow(version, number)
            self._check_table(number)
        else:
            self._follow_quarantine(version)
            self._rows_once(uri, number)

    def check_acknowledged(self, offset: Offset) -> None:
        """A batch was acknowledged: the table has come to its end, unless a person has set it back.

        Raises:
            BrokenPromiseError: it has not.
        """
        if self._restores or self._set_back:
            return
        for one in offset:
            if one.records and self.positions.get(one.partition, 0) < one.end:
                raise BrokenPromiseError(f"{one.partition}: acknowledged up to {one.end}, position {self.positions}")

    def check_end(self, ends: Mapping[int, int]) -> None:
        """Everything was read: each offset is in the table or in its quarantine, once.

        Raises:
            BrokenPromiseError: one is not.
        """
        if self.positions != dict(ends):
            raise BrokenPromiseError(f"the end is at {dict(ends)}, the positions are {self.positions}")
        rows, held = self._rows_once(self._uri, -1), self._held()
        wanted = {(partition, offset) for partition, end in ends.items() for offset in range(end)}
        if lost := wanted - rows - held:
            raise BrokenPromiseError(f"at the end {sorted(lost)} are neither in the table nor in the quarantine")
        if twice := (rows & held) - self._replayed:
            raise BrokenPromiseError(f"at the end {sorted(twice)} are in the table and in the quarantine")
        for uri in (self._uri, quarantine_of(self._uri)):
            if uri in self._store.logs:
                self._check_values(uri)

    def _follow_quarantine(self, version: Version) -> None:
        if '"RESTORE"' in version.text and self.positions:
            self._bad_taken = True
            self._bad_restores += 1
        elif rewound(GROUP) in version.applications:
            self._bad_taken = False

    def _follow(self, version: Version, number: int) -> None:
        if '"RESTORE"' in version.text and self.positions:  # without positions nothing is to be set back
            self.restored = True
            self._restores += 1
        elif version.note.get("kind") == "table" and self.restored:
            raise BrokenPromiseError(f"version {number} was committed between a RESTORE and its rewind")
        before = parse_positions(self._numbers, GROUP)
        self._numbers |= version.applications
        if rewound(GROUP) in version.applications:
            self.restored = False
        for key, at in parse_positions(self._numbers, GROUP).items():
            if at < before.get(key, 0):
                self._set_back |= rewound(GROUP) in version.applications
                self._named = {row for row in self._named if row[0] != key.partition or row[1] < at}
        if version.note.get("agent") == "quarantine replay":
            for path in version.adds:
                self._replayed |= self._store.rows(f"{self._uri}/{path}")
        self._follow_named(version)

    def _follow_named(self, version: Version) -> None:
        if self._restores > 1 and rewound(GROUP) in version.applications:  # rows of an earlier past may be back
            at = self.positions
            self._named = {row for row in self._held() if row[1] < at.get(row[0], 0)}
        if (named := version.note.get("quarantined")) is not None:
            for file in parse_quarantined(named).files:
                self._named |= self._store.rows(f"{quarantine_of(self._uri)}/{file.path}")

    def _check_table(self, number: int) -> None:
        rows = self._rows_once(self._uri, number)
        # After a rewind the quarantine has rows that are to be read again, until it was set back as well.
        elsewhere = self._named | (set() if self._restores or self._bad_restores else self._held())
        if self.restored and self._restores > 1:  # rows of an earlier past, until the rewind
            return
        if twice := (rows & elsewhere) - self._replayed:
            raise BrokenPromiseError(f"version {number}: {sorted(twice)} are in the table and in the quarantine")
        if self.restored:
            return
        begins = {key.partition: at for key, at in parse_group(self._numbers, GROUP).beginnings.items()}
        if any(begins.values()):
            raise BrokenPromiseError(f"version {number}: the group begins at {begins}, its logs at 0")
        wanted = {(partition, offset) for partition, end in self._of_all_groups().items() for offset in range(end)}
        if lost := wanted - rows - elsewhere:
            raise BrokenPromiseError(f"version {number}: {sorted(lost)} are lost, positions {self.positions}")
        if early := (rows | self._named) - wanted:
            raise BrokenPromiseError(f"version {number}: {sorted(early)} are at or past the positions {self.positions}")

    def _of_all_groups(self) -> dict[int, int]:
        """The positions by partition number; no two groups read the same partition."""
        found = [parse_positions(self._numbers, one) for one in groups(self._numbers)]
        return {key.partition: at for positions in found for key, at in positions.items()}

    def _check_values(self, uri: str) -> None:
        for path in self._store.logs[uri].versions[-1].files:
            columns = self._store.data[f"{uri}/{path}"].select(["partition", "offset", "value"]).to_pydict().values()
            for partition, offset, value in zip(*columns, strict=True):
                if (value is None) != ((partition, offset) in self._tombstones):
                    raise BrokenPromiseError(f"{uri}: {partition}:{offset} has the value {value!r}")

    def _held(self) -> set[Row]:
        quarantine = quarantine_of(self._uri)
        return self._rows_once(quarantine, -1) if quarantine in self._store.logs else set()

    def _rows_once(self, uri: str, number: int) -> set[Row]:
        count, rows = 0, set[Row]()
        for path in self._store.logs[uri].versions[number].files:
            found = self._store.rows(f"{uri}/{path}")
            count += len(found)
            rows |= found
        if count != len(rows):
            raise BrokenPromiseError(f"{uri} version {number}: {count} rows are {len(rows)} offsets")
        return rows
