"""A file of another writer is described as one of our own with the same rows."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import TableError
from spark_sink.lake.adopted_files import describe_written
from spark_sink.lake.parquet_landing import Landing, normal_schema

SCHEMA = normal_schema(
    pa.schema(
        [
            pa.field("topic", pa.string()),
            pa.field("partition", pa.int32()),
            pa.field("offset", pa.int64()),
            pa.field("timestamp", pa.timestamp("us", tz="UTC")),
            pa.field("value", pa.string()),
        ]
    )
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from(["a", "b"]),
            "partition": st.integers(0, 2),
            "offset": st.integers(0, 2**62),
            "timestamp": st.one_of(st.none(), st.integers(-(2**60), 2**60)),
            "value": st.one_of(st.none(), st.text(max_size=3)),
        }
    ),
    min_size=1,
    max_size=40,
)


def written(folder: Path, rows: pa.Table) -> pa_fs.FileSystem:
    """Write the rows as `file.parquet`, in several row groups."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / "file.parquet", row_group_size=7)
    return pa_fs.SubTreeFileSystem(str(folder), pa_fs.LocalFileSystem())


@given(values=ROWS)
def test_the_description_is_that_of_our_own_file(
    tmp_path_factory: pytest.TempPathFactory, values: list[object]
) -> None:
    """Offsets by partition, and the statistics of the log."""
    rows = pa.Table.from_pylist(values, schema=SCHEMA)
    files = written(tmp_path_factory.mktemp("adopted"), rows)
    found = describe_written(files, "file.parquet", SCHEMA.names)
    landing = Landing(files, SCHEMA)
    for batch in rows.to_batches():
        landing.write(batch)
    [wanted] = landing.close()
    assert json.loads(found.stats) == json.loads(wanted.stats)
    assert (found.spans, found.partition_values) == (wanted.spans, wanted.partition_values)
    assert found.size_bytes == files.get_file_info("file.parquet").size


@pytest.mark.parametrize("name", ["topic", "partition", "offset"])
def test_a_row_without_an_identifying_value_is_refused(tmp_path: Path, name: str) -> None:
    """It would look like a record written twice."""
    row = {"topic": "a", "partition": 0, "offset": 1} | {name: None}
    files = written(tmp_path, pa.Table.from_pylist([row], schema=SCHEMA))
    with pytest.raises(TableError, match="a row has no topic, no partition or no offset"):
        describe_written(files, "file.parquet", SCHEMA.names)
