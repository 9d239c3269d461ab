"""Delta in memory answers as delta-rs does, wherever two commits meet."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from tests.simulation.memory_delta import MemoryDelta
from tests.simulation.memory_store import Store
from tests.simulation.scheduler import Actor, Scheduler

SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
LATER = '(topic = \'t\' AND "partition" = 0 AND "offset" >= 2)'


class _Real:
    """A table by delta-rs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        DeltaTable.create(str(folder), schema=Schema.from_arrow(SCHEMA))

    def open(self) -> Any:
        return DeltaTable(str(self._folder))

    def write(self, name: str, rows: pa.Table) -> int:
        """A data file; its size."""
        pq.write_table(rows, self._folder / name)
        return (self._folder / name).stat().st_size

    def offsets(self) -> list[int]:
        """The rows of the newest version."""
        return sorted(self.open().to_pyarrow_table()["offset"].to_pylist())

    def optimize(self, handle: Any) -> None:
        """Join all files."""
        handle.optimize.compact()

    def set_property(self, handle: Any) -> None:
        """Change the metadata."""
        handle.alter.set_table_properties({"delta.appendOnly": "false"})


class _Memory:
    """A table in memory."""

    def __init__(self, _: Path) -> None:
        scheduler = Scheduler(0, fault_rate=0.0, stay=1.0, calm_after=0)
        scheduler._current = Actor("test")
        self._store = Store(scheduler)
        bound: Any = type("Table", (MemoryDelta,), {"store": self._store})
        self.table = bound
        self.table.create("mem://lake/table", schema=Schema.from_arrow(SCHEMA))

    def open(self) -> Any:
        return self.table("mem://lake/table")

    def write(self, name: str, rows: pa.Table) -> int:
        """A data file; its size."""
        self._store.data[f"mem://lake/table/{name}"] = rows
        return int(rows.num_rows)

    def offsets(self) -> list[int]:
        """The rows of the newest version."""
        files = self._store.logs["mem://lake/table"].versions[-1].files
        return sorted(offset for path in files for _, offset in self._store.rows(f"mem://lake/table/{path}"))

    def optimize(self, handle: Any) -> None:
        """Join all files."""
        handle.optimize()

    def set_property(self, handle: Any) -> None:
        """Change the metadata."""
        handle.set_property()


def _rows(*offsets: int) -> pa.Table:
    return pa.table({"topic": ["t"] * len(offsets), "partition": [0] * len(offsets), "offset": offsets}, schema=SCHEMA)


def _commit(
    table: Any,
    handle: Any,
    *offsets: int,
    application: str = "a",
    retries: int | None = None,
    removes: bool = False,
) -> None:
    """Add a file of these offsets, perhaps in the place of all others, and set an application id."""
    name = f"part-{'-'.join(map(str, offsets))}-{application}.parquet"
    size = table.write(name, _rows(*offsets))
    stats = {"numRecords": len(offsets), "minValues": {"offset": min(offsets)}, "maxValues": {"offset": max(offsets)}}
    actions: list[AddAction | RemoveAction] = [AddAction(name, size, {}, 0, not removes, json.dumps(stats))]
    if removes:
        before = pa.table(handle.get_add_actions(flatten=True)).to_pylist()
        actions += [RemoveAction(one["path"], False, 0, one["size_bytes"], {}) for one in before]  # noqa: FBT003 -- no data changes
    handle.create_write_transaction(
        actions,
        mode="append",
        schema=handle.schema(),
        partition_by=[],
        commit_properties=CommitProperties(app_transactions=[Transaction(application, 1)], max_commit_retries=retries),
    )


OTHERS: Mapping[str, Callable[[Any, Any], object]] = {
    "nothing": lambda *_: None,
    "a commit of the same application": lambda table, handle: _commit(table, handle, 9),
    "a commit of another application": lambda table, handle: _commit(table, handle, 9, application="b"),
    "a compaction": lambda table, handle: _commit(table, handle, 0, 1, 2, 3, application="c", removes=True),
    "OPTIMIZE": lambda table, handle: table.optimize(handle),
    "RESTORE": lambda _, handle: handle.restore(2),
    "DELETE": lambda _, handle: handle.delete(LATER, commit_properties=CommitProperties()),
    "a property": lambda table, handle: table.set_property(handle),
}
OURS: Mapping[str, Callable[[Any, Any], object]] = {
    "append": lambda table, handle: _commit(table, handle, 7),
    "append to this version only": lambda table, handle: _commit(table, handle, 7, retries=0),
    "compaction": lambda table, handle: _commit(table, handle, 0, 1, 2, 3, removes=True),
    "compaction of this version only": lambda table, handle: _commit(
        table, handle, 0, 1, 2, 3, removes=True, retries=0
    ),
    "DELETE": lambda _, handle: handle.delete(LATER, commit_properties=CommitProperties()),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("ours", OURS)
def test_two_commits_meet_as_in_delta_rs(tmp_path: Path, ours: str, other: str) -> None:
    """A fence that holds only in the memory of a test is none, and a false alarm of it neither."""
    seen = []
    for kind in (_Real, _Memory):
        (tmp_path / kind.__name__).mkdir()
        table: Any = kind(tmp_path / kind.__name__)
        for offset in range(4):
            _commit(table, table.open(), offset, application=f"first{offset}")
        handle = table.open()
        OTHERS[other](table, table.open())
        try:
            OURS[ours](table, handle)
        except DeltaError as error:
            seen.append((type(error).__name__, table.offsets()))
        else:
            seen.append(("committed", table.offsets()))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("kind", [_Real, _Memory])
def test_a_table_is_created_with_its_first_files_once(tmp_path: Path, kind: type[_Real | _Memory]) -> None:
    """The first version has the files and the application ids; a second creator is refused, and adds nothing."""
    table = kind(tmp_path / "other")
    (tmp_path / "new").mkdir()
    place, create = (
        (str(tmp_path / "new"), create_table_with_add_actions)
        if isinstance(table, _Real)
        else ("mem://lake/new", table.table.create_with)
    )
    columns = Schema.from_arrow(SCHEMA)
    given = CommitProperties(app_transactions=[Transaction("a", 5)], max_commit_retries=0)
    create(place, columns, [AddAction("one.parquet", 9, {}, 0, True, "{}")], "error", [], commit_properties=given)  # noqa: FBT003
    with pytest.raises(DeltaError):
        create(place, columns, [AddAction("two.parquet", 9, {}, 0, True, "{}")], "error", [], commit_properties=given)  # noqa: FBT003
    opened: Any = DeltaTable(place) if isinstance(table, _Real) else table.table(place)
    assert opened.version() == 0
    assert pa.table(opened.get_add_actions(flatten=True))["path"].to_pylist() == ["one.parquet"]
    if isinstance(table, _Real):
        assert opened.transaction_version("a") == 5
