"""Properties that users set on a table: followed, or refused with a sentence that names them."""

import logging
from pathlib import Path

import pytest

from spark_sink.errors import TableError
from spark_sink.lake.iceberg import compaction
from tests.iceberg_batches import Writer, bad_offsets, offsets
from tests.table_kinds import peer


def _set(root: Path, name: str, value: str) -> None:
    with peer(root).transaction() as change:
        change.set_properties({name: value})


def _folders(root: Path) -> set[str]:
    return {one.file.file_path.rpartition("/")[0] for one in peer(root).scan().plan_files()}


@pytest.mark.parametrize("scheme", ["file://", ""])
def test_data_files_are_where_the_table_wants_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """They stayed in the table's own folder: with a property that keeps data in a bucket, in the wrong one."""
    writer, other = Writer(tmp_path, more={"compactEvery": "3"}), Writer(tmp_path)
    writer.write(0, 3)
    (own,) = _folders(tmp_path)
    wanted = f"{scheme}{tmp_path}/elsewhere/files"
    _set(tmp_path, "write.data.path", f"{wanted}/")
    writer.write(3, 6, bad={4})
    other.write(2, 9)  # a copy without the rows that the table has
    assert _folders(tmp_path) == {own, wanted}
    monkeypatch.setattr(compaction, "ENOUGH", 2)
    for begin in range(9, 30, 3):
        writer.write(begin, begin + 3)
    assert _folders(tmp_path) == {wanted}  # joined files, too
    assert offsets(tmp_path) == [one for one in range(30) if one != 4]
    assert bad_offsets(tmp_path) == [4]


def test_a_folder_that_is_no_full_address_is_refused(tmp_path: Path) -> None:
    """Each reader would look for the files in its own working folder."""
    writer = Writer(tmp_path)
    writer.write(0, 3)
    _set(tmp_path, "write.data.path", "files")
    with pytest.raises(TableError, match=r"raw.events: its property write.data.path is 'files', need a full address"):
        writer.write(3, 6)
    _set(tmp_path, "write.data.path", "")
    writer.write(3, 6)
    assert offsets(tmp_path) == list(range(6))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("commit.manifest.min-count-to-merge", "many"),
        ("commit.manifest.target-size-bytes", "1MB"),
        ("commit.manifest-merge.enabled", "maybe"),
    ],
)
def test_a_property_that_a_commit_cannot_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """It ended with a ValueError that names no table; agents of a fleet take only their own errors for a table's."""
    monkeypatch.setattr("spark_sink.sink.commit_by_compare_and_swap._FAILURE_PAUSE_S", 0.0)
    writer = Writer(tmp_path)
    writer.write(0, 3)
    _set(tmp_path, name, value)
    with pytest.raises(TableError, match=rf"raw.events: nothing was written: .*{name} to an? \w+: {value}$"):
        writer.write(3, 6)
    _set(tmp_path, name, {"maybe": "true"}.get(value, "20"))
    writer.write(3, 6)
    assert offsets(tmp_path) == list(range(6))


def test_a_property_that_is_not_a_number_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each commit logged it, twice a second."""
    writer = Writer(tmp_path, more={"compactEvery": "2"})
    writer.write(0, 3)
    _set(tmp_path, "history.expire.min-snapshots-to-keep", "all of them")
    with caplog.at_level(logging.WARNING):
        for begin in (3, 6, 9, 12):
            writer.write(begin, begin + 3)
    assert sum("do not expire: a property is not a number" in one.getMessage() for one in caplog.records) == 1
