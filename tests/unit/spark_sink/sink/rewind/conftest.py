"""The table of a rewind."""

from pathlib import Path

import pytest

from tests.unit.spark_sink.sink.rewind.rolled_back_lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An Iceberg table with no row yet."""
    return Lake(tmp_path)
