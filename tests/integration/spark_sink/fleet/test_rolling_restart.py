"""A rolling restart of a fleet of real processes: every record once, few moves, a quick end."""

import sys
from pathlib import Path

import pytest

from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.fleet.rolling_restart import OF_CHART, QUICK, Fleet, restart

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.parametrize("of", [QUICK, OF_CHART], ids=["quick settings", "settings of the chart"])
def test_a_rolling_restart_writes_every_record_once(cluster: Cluster, tmp_path: Path, name: str, of: Fleet) -> None:
    """Each agent ends with 0, and the others read its topics meanwhile; `make bench` measures moves and gaps."""
    found = restart(of, cluster, tmp_path, name)
    sys.stdout.write(f"{found}\n")
    assert found.written == found.sent
    assert len(found.ends_s) == of.agents
    assert len(found.moves) == of.topics
    assert sum(found.moves.values()) > 0
