"""The tables of a catalog that an address with placeholders names."""

from pathlib import Path

import pytest

from spark_sink.errors import OptionError, TableError
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.matching_names import tables_of_topics
from spark_sink.lake.matching_tables import matching_tables
from tests.table_kinds import SCHEMA, warehouse

NAMES = ["lake.raw.a", "lake.raw.a_quarantine", "lake.raw.flights_x", "lake.raw.east.b", "lake.west.b"]


@pytest.fixture
def storage(tmp_path: Path) -> dict[str, str]:
    """The options of a catalog with a few tables."""
    for name in NAMES:
        IcebergTable(f"iceberg://{name}", "g", warehouse(tmp_path)).create(SCHEMA)
    return warehouse(tmp_path)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("lake.raw.{topic}", {"raw.a": "a", "raw.a_quarantine": "a_quarantine", "raw.flights_x": "flights_x"}),
        ("lake.raw.flights_{topic}", {"raw.flights_x": "x"}),
        ("lake.{cluster}.b", {"west.b": ""}),
        ("lake.raw.{cluster}.{topic}", {"raw.east.b": "b"}),
        ("lake.{topic}.b", {"west.b": "west"}),
        ("lake.{topic}.{topic}", {}),
        ("lake.none.{topic}", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_part_of_a_name_may_have_a_placeholder(
    storage: dict[str, str], address: str, found: dict[str, str]
) -> None:
    """Each stands for a part of one name; a placeholder that is there twice for one text."""
    expected = [(f"iceberg://lake.{name}", topic) for name, topic in found.items()]
    assert list(tables_of_topics(f"iceberg://{address}", storage)) == expected


def test_a_quarantine_is_left_out_where_its_table_is_found(storage: dict[str, str]) -> None:
    """It would look like the table of a topic with a longer name."""
    found = matching_tables("iceberg://lake.raw.{topic}", storage)
    assert found == ["iceberg://lake.raw.a", "iceberg://lake.raw.flights_x"]


def test_what_matches_nothing_is_one_sentence_and_makes_no_catalog(tmp_path: Path) -> None:
    """A misspelled warehouse must not leave an empty database there."""
    with pytest.raises(TableError, match="no Iceberg table matches; check the name"):
        matching_tables("iceberg://lake.raw.{topic}", warehouse(tmp_path))
    assert not (tmp_path / "warehouse").exists()
    with pytest.raises(OptionError, match="cannot stand for the catalog"):
        matching_tables("iceberg://{cluster}.raw.{topic}", warehouse(tmp_path))
