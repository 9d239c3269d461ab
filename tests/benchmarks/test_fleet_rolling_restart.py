"""4 agents, 300 topics, the settings of the Helm chart: what a rolling restart costs each topic."""

import uuid
from pathlib import Path
from statistics import median

import pytest

from spark_sink.demo.cluster import Cluster
from tests.benchmarks.fleet_report import save
from tests.integration.spark_sink.fleet.rolling_restart import OF_CHART, restart

pytestmark = pytest.mark.benchmark


def test_a_rolling_restart_moves_each_topic_twice_and_pauses_it_for_3_s(cluster: Cluster, tmp_path: Path) -> None:
    """Away from its agent and back; the bars are in `bars.py`."""
    found = restart(OF_CHART, cluster, tmp_path, f"fleet-{uuid.uuid4().hex[:6]}")
    assert found.written == found.sent
    gaps, moves = found.gaps_s.values(), found.moves.values()
    save(
        "rolling restart",
        {
            "end_s": {"most": max(found.ends_s)},
            "moves_of_a_topic": {"most": max(moves), "sum": sum(moves)},
            "gap_s": {"median": median(gaps), "most": max(gaps)},
        },
    )
