"""Rows are found by their topic in files that delta-rs has rewritten, and files without such rows are not opened."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_sink.lake.table_dataset import rows_where


def _rows(topics: list[str], first: int) -> pa.Table:
    offsets = pa.array(range(first, first + len(topics)), pa.int64())
    return pa.table({"topic": topics, "partition": pa.array([0] * len(topics), pa.int32()), "offset": offsets})


def _found(table: str, condition: pc.Expression | None, topics: list[str]) -> list[int]:
    def where(topic: pc.Expression) -> pc.Expression:
        same = topic.isin(topics)
        return same if condition is None else same & condition

    batches = rows_where(DeltaTable(table), where, ["offset"])
    return sorted(one for batch in batches for one in batch.column("offset").to_pylist())


@pytest.mark.parametrize("partition_by", [None, ["topic"]])
def test_rows_of_a_topic_are_found_in_views_of_texts(tmp_path: Path, partition_by: list[str] | None) -> None:
    """A DELETE writes them, that of a rewind too; Arrow compares no text with a view, and the next rewind failed."""
    table = str(tmp_path / "table")
    write_deltalake(table, _rows(["t", "u", "v", "t"], 0), partition_by=partition_by)
    write_deltalake(table, _rows(["u", "t"], 10), partition_by=partition_by, mode="append")
    DeltaTable(table).delete('"offset" = 3')
    if partition_by is None:
        kinds = [pq.read_schema(file).field("topic").type for file in DeltaTable(table).file_uris()]
        assert pa.string_view() in kinds  # else this test shows nothing
    assert _found(table, None, ["t"]) == [0, 11]
    assert _found(table, pc.field("offset") > 0, ["t", "v"]) == [2, 11]
    assert _found(table, None, ["w"]) == []


def test_files_without_the_topic_are_not_opened(tmp_path: Path) -> None:
    """A replay and a publication look for a few records in a large table."""
    table = str(tmp_path / "table")
    for number, topic in enumerate("tuv"):
        write_deltalake(table, _rows([topic], number), mode="append")
    for file in DeltaTable(table).file_uris():
        if pq.read_table(file).column("topic").to_pylist() != ["u"]:
            Path(file).unlink()
    assert _found(table, None, ["u"]) == [1]
