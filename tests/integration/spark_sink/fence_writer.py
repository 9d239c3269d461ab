"""One writer of test_fence, a process of its own: takes batches from the table's positions and commits them.

Kafka is arithmetic here: partition p has the offsets 0 .. records - 1.
"""

import argparse
import random
import sys
import time
from dataclasses import replace

import pyarrow as pa

from spark_sink.errors import HoleError
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.positions_in_delta_log import positions
from spark_sink.lake.table_contract import Change, Snapshot
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit

SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])


class _Fenced(DeltaLakeTable):
    """Says when it stands between the look and the swap, and sometimes lingers there."""

    pauses = random.Random(0)

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        if self.pauses.random() < 0.2:
            _say("looked")
            time.sleep(0.05)
        super().swap(snapshot, change)


class _ByPath(_Fenced):
    """The fence taken out: a fresh handle for the commit, as a writer that commits by path has it."""

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        _say("looked")
        time.sleep(0.05)
        self._handle = None
        DeltaLakeTable.swap(self, self.refresh() or snapshot, change)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _land(path: str, ranges: list[Range]) -> Batch:
    landing = Landing(filesystem(path, make=True), SCHEMA)
    for one in ranges:
        columns = [[one.topic] * one.records, [one.partition] * one.records, list(range(one.begin, one.end))]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        landing.write(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    return Batch(offset=Offset.of(ranges), files=landing.close(), schema=SCHEMA)


def _next_ranges(path: str, partitions: int, records: int, random_: random.Random) -> list[Range] | None:
    known = positions(path, "g")
    keys = [TopicPartition("t", number) for number in range(partitions)]
    left = [key for key in keys if known.get(key, 0) < records]
    if not left:
        return None
    chosen = random_.sample(left, random_.randint(1, len(left)))
    begins = {key: known.get(key, 0) for key in chosen}
    return [Range(*key, begin, min(begin + random_.randint(1, 60), records)) for key, begin in begins.items()]


def main() -> None:
    """Write until every partition is whole."""
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--records", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--unfenced", action="store_true")
    asked = parser.parse_args()
    random_ = _Fenced.pauses = random.Random(asked.seed)
    table = (_ByPath if asked.unfenced else _Fenced)(asked.path, "g")
    last: Batch | None = None
    _say("ready")
    sys.stdin.readline()
    while (ranges := _next_ranges(asked.path, asked.partitions, asked.records, random_)) is not None:
        batch = _land(asked.path, ranges)
        try:
            commit(table, batch)
            if last is not None and random_.random() < 0.2:
                # A replay: the same ranges again, in new files.
                commit(table, replace(last, files=_land(asked.path, list(last.offset)).files))
        except HoleError as error:
            if not asked.unfenced:
                sys.exit(f"a hole in a table that is fenced: {error}")
        _say("committed")
        last = batch


if __name__ == "__main__":
    main()
