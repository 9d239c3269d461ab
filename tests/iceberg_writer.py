"""A process that writes batches into an Iceberg table as Spark's sink does, and may be killed at any instant."""

import random
from pathlib import Path

import pyarrow as pa

from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.delta_sink import SinkWriter
from spark_sink.sink.sink_options import SinkOptions

PARTITIONS = 2
_SCHEMA = arrow_schema(headers=False)
_MOST = 5


def write_batches(root: Path, agent: str, compact_every: int = 5) -> None:
    """Write batches, as Spark would, until the file `stop` exists.

    A batch is logged before it runs. After a start the last logged batch is repeated with the same ranges, and the next
    one begins at its end. Agents read the same partitions in batches of other lengths, as after a takeover.

    Args:
        root: folder of the warehouse and the checkpoints.
        agent: name of the agent, and of its checkpoint.
        compact_every: snapshots between two compactions.
    """
    log = offset_log(root, agent)
    log.mkdir(parents=True, exist_ok=True)
    given = {
        "path": "lake.raw.events",
        "kafka.group.id": "g",
        "checkpointLocation": str(log.parent),
        "tableFormat": "iceberg",
        "catalog.warehouse": str(root / "warehouse"),
        "compactEvery": str(compact_every),
    }
    lengths = random.Random(agent)
    number, ends = _last(log)
    while True:
        if not (log / f"{number}").exists():
            ranges = [Range("t", one, ends[one], ends[one] + lengths.randint(0, _MOST)) for one in range(PARTITIONS)]
            new = log / ".new"
            new.write_text(f"v1\n{{}}\n{Offset.of(ranges).json()}\n")
            new.rename(log / f"{number}")
        offset = _read(log / f"{number}")
        writer = SinkWriter(SinkOptions.parse(given), _SCHEMA)
        writer.commit([writer.write(iter([_rows(offset)]))], number)
        if (root / "stop").exists():
            return  # after a batch: a writer that was just started has committed what the killed one logged
        number, ends = number + 1, {one.partition: one.end for one in offset}


def offset_log(root: Path, agent: str) -> Path:
    """Return the folder of the offset log of an agent."""
    return root / agent / "offsets"


def last_batch(root: Path, agent: str) -> dict[int, int]:
    """Return the ends of the partitions in the last logged batch of an agent."""
    log = offset_log(root, agent)
    last = max(int(one.name) for one in log.iterdir() if one.name.isdecimal())
    return {one.partition: one.end for one in _read(log / f"{last}")}


def _last(log: Path) -> tuple[int, dict[int, int]]:
    """Return the number of the last logged batch and the ends of the batch before it."""
    logged = sum(1 for one in log.iterdir() if one.name.isdecimal())
    if not logged:
        return 0, dict.fromkeys(range(PARTITIONS), 0)
    return logged - 1, {one.partition: one.begin for one in _read(log / f"{logged - 1}")}


def _read(path: Path) -> Offset:
    return Offset.parse(path.read_text().splitlines()[2])


def _rows(offset: Offset) -> pa.RecordBatch:
    keys = [(TopicPartition(one.topic, one.partition), at) for one in offset for at in range(one.begin, one.end)]
    rows = [{"topic": key.topic, "partition": key.partition, "offset": at, "value": b"v"} for key, at in keys]
    return pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)
