"""The tables of an address with placeholders."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pyarrow.fs as pa_fs
import pytest
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler

from spark_sink.errors import OptionError, TableError
from spark_sink.lake import matching_tables as module
from spark_sink.lake.matching_tables import matching_tables
from spark_sink.lake.positions_in_delta_log import existing


def tables(root: Path, *names: str) -> None:
    """Create folders of Delta tables."""
    for name in names:
        (root / name / "_delta_log").mkdir(parents=True)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("{topic}", ["a", "a_b"]),
        ("eu/{topic}", ["eu/x", "eu/y"]),
        ("{cluster}/{topic}", ["eu/x", "eu/y", "us/x"]),
        ("{cluster}/x", ["eu/x", "us/x"]),
        ("a_{topic}", ["a_b"]),
        ("a/", ["a/"]),
        ("none", ["none"]),
    ],
)
def test_an_address_names_the_tables_that_exist(tmp_path: Path, address: str, found: list[str]) -> None:
    """A placeholder stands for one whole name or a part of it; without one the address itself is named."""
    tables(tmp_path, "a", "a_b", "a_quarantine", "eu/x", "eu/x_quarantine", "eu/y", "us/x")
    (tmp_path / "checkpoint").mkdir()
    assert matching_tables(f"{tmp_path}/{address}") == [f"{tmp_path}/{one}" for one in found]


def test_the_address_of_a_folder_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People name tables from where they are."""
    tables(tmp_path, "a")
    monkeypatch.chdir(tmp_path)
    assert matching_tables("{topic}") == matching_tables("./{topic}") == [str(tmp_path.resolve() / "a")]


@pytest.mark.parametrize("address", ["{topic}", "none/{topic}", "{cluster}/{topic}"])
def test_an_address_that_matches_nothing_is_one_sentence(tmp_path: Path, address: str) -> None:
    """A total over no table would look like a whole lake."""
    with pytest.raises(TableError, match="no Delta table matches; check the address"):
        matching_tables(f"{tmp_path}/{address}")


class Asked(DeltaStorageHandler):
    """A store that remembers the folders that it listed."""

    listed: ClassVar[list[str]] = []

    def get_file_info_selector(self, selector: pa_fs.FileSelector) -> list[pa_fs.FileInfo]:
        """Remember the folder."""
        self.listed.append(selector.base_dir)
        return super().get_file_info_selector(selector)


def test_the_data_files_of_a_table_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an object store each 1,000 of them are one request, and a table may have hundreds of thousands."""
    tables(tmp_path, "eu/a", "eu/a_quarantine", "us/b")
    (tmp_path / "us" / "checkpoint").mkdir()
    for log in tmp_path.glob("*/*/_delta_log"):
        (log / "00000000000000000000.json").touch()
    store = pa_fs.PyFileSystem(Asked(f"file://{tmp_path}"))
    monkeypatch.setattr(module, "filesystem", lambda *_: store)
    monkeypatch.setattr(Asked, "listed", [])
    assert matching_tables("s3://b/{cluster}/{topic}") == ["s3://b/eu/a", "s3://b/us/b"]
    assert sorted(Asked.listed) == ["", "eu", "us"]


@pytest.mark.parametrize("find", [matching_tables, lambda address: existing(address, None)], ids=["match", "positions"])
def test_an_unknown_scheme_is_one_sentence(find: Callable[[str], object]) -> None:
    """delta-rs would name its forty schemes."""
    with pytest.raises(OptionError, match=r"^foo://b: no object store has this scheme; an address begins with s3://"):
        find("foo://b/{topic}")


@pytest.mark.parametrize("find", [matching_tables, lambda address: existing(address, None)], ids=["match", "positions"])
@pytest.mark.parametrize(
    "error", [OSError("Operation not supported\n  ↳ an error\n    ↳ refused"), DeltaError("an error\n refused")]
)
def test_a_store_that_does_not_answer_is_one_line(
    find: Callable[[str], object], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-rs draws the causes as a tree."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("spark_sink.lake.table_storage._ObjectStore", fail)
    with pytest.raises(TableError, match=r"^s3://b: its object store cannot be opened: .*an error refused$"):
        find("s3://b/{topic}")


@pytest.mark.parametrize("address", ["s3://{topic}", "s3://lake-{cluster}/{topic}", "abfss://{topic}@a.b.c/t"])
def test_a_placeholder_cannot_stand_for_a_bucket(address: str) -> None:
    """A listing begins in a bucket."""
    with pytest.raises(OptionError, match=r"stands in the name of the bucket.*name the bucket") as refused:
        matching_tables(address)
    assert str(refused.value).startswith(f"{address}: {{")
