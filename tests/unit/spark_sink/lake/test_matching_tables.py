"""The tables of an address with placeholders."""

from pathlib import Path

import pytest

from spark_sink.errors import TableError
from spark_sink.lake.matching_tables import matching_tables


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
