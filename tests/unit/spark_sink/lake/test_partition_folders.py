"""Where the files of a partitioned Delta table are: readers that take the values from the path find them there."""

from pathlib import Path

import pyarrow.fs as pa_fs
import pytest

from spark_sink.lake.partition_folders import make_folder, new_file


@pytest.mark.parametrize(
    ("values", "folder"),
    [
        ({}, ""),
        ({"topic": "flights.JFK-LAX"}, "topic=flights.JFK-LAX/"),
        ({"gate": ""}, "gate=__HIVE_DEFAULT_PARTITION__/"),
        ({"day": "2026-01-31", "gate": None}, "day=2026-01-31/gate=__HIVE_DEFAULT_PARTITION__/"),
    ],
)
def test_a_file_is_in_the_folder_of_its_partition(values: dict[str, str | None], folder: str) -> None:
    """One folder for each column, in their order."""
    path = new_file(values)
    assert path.startswith(f"{folder}part-")
    assert path != new_file(values)


@pytest.mark.parametrize("text", ["a b", "a/b", "50%", "ü"])
def test_a_value_that_a_path_would_escape_makes_no_folder(text: str) -> None:
    """Readers unescape paths once or twice, so a folder would be as wrong as none."""
    assert "/" not in new_file({"gate": text, "day": "2026-01-31"})


def test_a_local_folder_is_made_and_the_tables_own_is_left_alone(tmp_path: Path) -> None:
    """Twice, as the second file of a partition does."""
    files = pa_fs.SubTreeFileSystem(str(tmp_path), pa_fs.LocalFileSystem())
    for _ in range(2):
        make_folder(files, "topic=a/part-1.parquet")
    make_folder(files, "part-2.parquet")
    assert [one.name for one in tmp_path.rglob("*")] == ["topic=a"]
