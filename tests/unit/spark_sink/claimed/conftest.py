"""Two topics for jobs."""

from pathlib import Path

import pytest

from tests.unit.spark_sink.claimed.job_stage import ENDS, Stage, World


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Two topics of two partitions, one of them empty."""
    return Stage(World(dict(ENDS)), f"sqlite:///{tmp_path}/claims.db")
