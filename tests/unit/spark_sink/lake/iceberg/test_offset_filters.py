"""Filters by offset leave out no row that is wanted."""

from pathlib import Path

import pytest

from spark_sink.lake.iceberg.offset_filters import from_offsets
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.ranges.batch_offset import TopicPartition
from tests.iceberg_batches import Writer
from tests.table_kinds import ADDRESS, warehouse


@pytest.mark.parametrize(("partitions", "found"), [(3, [7, 8, 9]), (5_000, [6, 7, 8, 9])], ids=["few", "many"])
def test_rows_from_offsets_on_are_found(tmp_path: Path, partitions: int, found: list[int]) -> None:
    """Those of many partitions by the lowest offset: comparing each file with all of them takes minutes."""
    writer = Writer(tmp_path)
    writer.write(0, 10)
    floors = {TopicPartition("t", 0): 7} | {TopicPartition("t", number): 6 for number in range(1, partitions)}
    stored = open_stored(ADDRESS, warehouse(tmp_path))
    assert stored is not None
    rows = stored.rows(["offset"], from_offsets(floors))
    assert sorted(at for batch in rows for at in batch["offset"].to_pylist()) == found
