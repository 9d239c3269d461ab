"""Writers of one table for the benchmark of contention, each in a process of its own."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Lock
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException

from spark_sink.lake.table_formats import open_landing, open_table
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from spark_sink.sink.sink_options import SinkOptions

ROWS = 1_000  # of each commit
COMPACT_EVERY = 100
SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])
_VALUE = b"v" * 300


@dataclass(frozen=True, slots=True)
class Wrote:
    """The result of one commit.

    Attributes:
        at_once: no other writer was faster.
        refused: the library gave up, and the rows are not in the table.
        in_time: the commit ended within the time of the measurement.
    """

    at_once: bool
    refused: bool = False
    in_time: bool = True


Write = Callable[[int], Wrote]
"""Writes and commits the rows of one batch, by its number."""


def rows_of(writer: int, number: int) -> pa.RecordBatch:
    """Return the rows of one batch; each writer has a partition of its own."""
    offsets = range(number * ROWS, (number + 1) * ROWS)
    columns = [["t"] * ROWS, [writer] * ROWS, offsets, [_VALUE] * ROWS]
    arrays = [pa.array(column, one.type) for column, one in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def address(kind: str, root: Path) -> tuple[str, dict[str, str]]:
    """Return the table of one of our sinks, and the options of its storage."""
    if kind == "delta":
        return str(root / "table"), {}
    return "iceberg://lake.raw.events", {"catalog.warehouse": str(root / "warehouse")}


def _ours(kind: str, root: Path, writer: int) -> Write:
    """Return what the sinks do, with their defaults."""
    uri, storage = address(kind, root)
    settings = SinkOptions.parse(
        {"path": uri.removeprefix("iceberg://"), "kafka.group.id": "g", "checkpointLocation": "c", **storage}
        | ({"tableFormat": "iceberg"} if kind == "iceberg" else {})
    ).table
    table = open_table(uri, "g", storage, settings)

    def write(number: int) -> Wrote:
        landing = open_landing(uri, storage, SCHEMA, settings)
        landing.write(rows_of(writer, number))
        offset = Offset.of([Range("t", writer, number * ROWS, (number + 1) * ROWS)])
        done = commit(table, Batch(offset=offset, files=landing.close(), schema=SCHEMA))
        table.compact(COMPACT_EVERY)
        return Wrote(at_once=done.conflicts == 0)

    return write


def _delta_rs(root: Path, writer: int) -> Write:
    handle = DeltaTable(str(root / "peer"))

    def write(number: int) -> Wrote:
        handle.update_incremental()
        before = handle.version()
        try:
            # The library takes the next free version by itself, up to 15 times.
            write_deltalake(handle, rows_of(writer, number), mode="append")
        except CommitFailedError:
            return Wrote(at_once=False, refused=True)
        return Wrote(at_once=handle.version() == before + 1)

    return write


def _pyiceberg(root: Path, writer: int) -> Write:
    catalog = load_catalog("peer", type="sql", uri=_database(root), warehouse=f"file://{root}/peer")
    attempts: list[int] = []
    committing = catalog.commit_table

    def commit_table(*given: object) -> object:
        attempts.append(1)
        return committing(*given)  # type: ignore[arg-type]  # as given

    vars(catalog)["commit_table"] = commit_table
    table = catalog.load_table("raw.events")

    def write(number: int) -> Wrote:
        attempts.clear()
        table.refresh()
        try:
            table.append(pa.Table.from_batches([rows_of(writer, number)]))
        except CommitFailedException:
            return Wrote(at_once=False, refused=True)
        return Wrote(at_once=len(attempts) == 1)

    return write


def _database(root: Path) -> str:
    return f"sqlite:///{root}/peer.db?timeout=60"


def create(kind: str, root: Path) -> None:
    """Create the table of a kind."""
    if kind in {"delta", "iceberg"}:
        uri, storage = address(kind, root)
        open_table(uri, "g", storage).create(SCHEMA)
    elif kind == "delta-rs append":
        DeltaTable.create(str(root / "peer"), SCHEMA)
    else:
        catalog = load_catalog("peer", type="sql", uri=_database(root), warehouse=f"file://{root}/peer")
        catalog.create_namespace("raw")
        catalog.create_table("raw.events", SCHEMA)


@dataclass(frozen=True, slots=True)
class Case:
    """Writers of one table.

    Attributes:
        kind: of the table and its writers.
        root: folder of the table.
        seconds: time of the measurement.
    """

    kind: str
    root: Path
    seconds: float


def run(case: Case, writer: int, start: tuple[Lock, Barrier], results: "Queue[list[Wrote]]") -> None:
    """Write from the moment when all writers are ready; put the commits that began in time into the queue."""
    turn, begin = start
    made = {"delta-rs append": _delta_rs, "pyiceberg append": _pyiceberg}.get(case.kind)
    write = made(case.root, writer) if made else _ours(case.kind, case.root, writer)
    with turn:
        write(0)  # opens what is opened once
    begin.wait()
    end = time.monotonic() + case.seconds
    wrote: list[Wrote] = []
    number = 1
    while time.monotonic() < end:
        done = write(number)
        number += not done.refused
        wrote.append(replace(done, in_time=time.monotonic() < end))
    results.put(wrote)
