"""`azimuth sink` is killed at exact points of a batch: every record is once in the table or its quarantine."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.killed_agent import KilledAgent, Place

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FIRST, SECOND = ("checkpointed", "unanswered", "named"), ("files", "landed", "asking", "committed")
WAYS = [("iceberg", "rows"), ("delta", "direct")]


def _place(format_: str, root: Path) -> Place:
    if format_ == "delta":
        return Place(format="delta", table=str(root / "table"))
    catalog = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}/warehouse"}
    return Place(format="iceberg", table="lake.raw.events", options=catalog)


@pytest.mark.parametrize("points", [FIRST, pytest.param(SECOND, marks=pytest.mark.matrix)], ids="-".join)
@pytest.mark.parametrize(("format_", "landing"), WAYS)
def test_every_record_is_there_once_wherever_an_agent_is_killed(  # noqa: PLR0913, PLR0917 -- fixtures and cases
    cluster: Cluster,
    tmp_path: Path,
    topic: Callable[..., str],
    format_: str,
    landing: str,
    points: Sequence[str],
) -> None:
    """Between any two steps, a restart must find out from the table alone what is done."""
    topics = [topic(name, partitions=2) for name in "ab"]
    agent = KilledAgent(cluster.bootstrap_servers, topics, tmp_path, _place(format_, tmp_path), landing)
    agent.produce(30)
    for point in points:
        agent.kill_at(point)
    agent.finish()
    agent.check()
