"""An Iceberg table that can be rolled back, its writers, and what each offset must be after a rewind."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import pytest

from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.catalogs import identifier
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.quarantine import quarantine_commit
from spark_sink.sink.rewind.delta_rewind import rewind
from tests.iceberg_batches import Writer, bad_offsets, offsets
from tests.table_kinds import ADDRESS, catalog, peer, warehouse

KEY = TopicPartition("t", 0)


class Killed(BaseException):
    """The process ends here."""


class Lake(NamedTuple):
    """A table under test."""

    root: Path

    def snapshot(self) -> int:
        """The current snapshot."""
        found = peer(self.root).metadata.current_snapshot_id
        assert found is not None
        return found

    def roll_back(self, snapshot: int, address: str = ADDRESS) -> None:
        """Set the current snapshot, as Spark's procedures do."""
        table = catalog(self.root).load_table(identifier(address).path)
        table.manage_snapshots().set_current_snapshot(snapshot_id=snapshot).commit()

    def rewind(self, *, apply: bool = True) -> dict[TopicPartition, tuple[int, int]]:
        """Rewind, and return the positions before and after."""
        return {one.key: (one.before, one.after) for one in rewind(ADDRESS, None, warehouse(self.root), apply=apply)}

    def position(self, key: TopicPartition = KEY, group: str = "g") -> int:
        """The table's position."""
        snapshot = IcebergTable(ADDRESS, group, warehouse(self.root)).refresh()
        assert snapshot is not None
        return snapshot.positions[key]

    def forget(self) -> None:
        """Remove all former metadata files, as most are after twenty more commits."""
        for one in peer(self.root).metadata.metadata_log:
            Path(one.metadata_file.removeprefix("file://")).unlink(missing_ok=True)

    def assert_whole(self, end: int, topic: str = "t") -> None:
        """Each offset is in exactly one of table and quarantine."""
        assert sorted(offsets(self.root, topic=topic) + bad_offsets(self.root, topic=topic)) == list(range(end))
        assert verify(ADDRESS, None if topic == "t" else "h", warehouse(self.root)).ok


def continue_to(lake: Lake, end: int, bad: Collection[int] = (), group: str = "g", topic: str = "t") -> None:
    """A new writer continues at the table's position."""
    writer = Writer(lake.root, group, topic)
    writer.write(lake.position(TopicPartition(writer.topic, 0), writer.options.group), end, bad)


def stopped_between_its_commits(writer: Writer, begin: int, end: int, bad: Collection[int]) -> Callable[[], None]:
    """Write a batch up to the commit of the table; the result goes on with that of the quarantine."""
    add, held = quarantine_commit.add_quarantined, list[Callable[[], None]]()

    def stop(*given: object, **more: object) -> None:
        held.append(lambda: add(*given, **more))  # type: ignore[arg-type]  # handed on
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quarantine_commit, "add_quarantined", stop)
        with pytest.raises(Killed):
            writer.write(begin, end, bad)
    return held[0]
