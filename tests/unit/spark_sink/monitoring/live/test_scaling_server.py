"""The autoscaler's figures over HTTP: what KEDA, Prometheus and a supervisor read."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from spark_sink.monitoring.live import ScalingFigures, ScalingServer, TopicFigures


@pytest.fixture
def figures() -> ScalingFigures:
    """Of an autoscaler that has not decided yet."""
    return ScalingFigures(30.0)


@pytest.fixture
def server(figures: ScalingFigures) -> Iterator[ScalingServer]:
    """A server on a free port."""
    with ScalingServer(("127.0.0.1", 0), figures) as served:
        yield served


def get(server: ScalingServer, path: str) -> tuple[int, str]:
    """Code and body of an answer."""
    try:
        with urllib.request.urlopen(server.url + path, timeout=5) as answer:  # noqa: S310 - our own server
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_group_without_a_decision_is_no_number(server: ScalingServer, figures: ScalingFigures) -> None:
    """KEDA keeps the replicas if the answer is an error; a 0 or a 1 would remove agents."""
    assert get(server, "agents.json") == (503, "{}")
    assert get(server, "readyz")[0] == 503
    assert get(server, "healthz") == (200, "ok")
    figures.needs("ingest", 4, "a topic has 4 workers")
    code, body = get(server, "agents.json")
    assert (code, json.loads(body)) == (200, {"ingest": {"agents": 4, "reason": "a topic has 4 workers"}})
    assert get(server, "readyz") == (200, "ok")
    assert get(server, "nothing")[0] == 404


def test_the_metrics_have_the_last_round(server: ScalingServer, figures: ScalingFigures) -> None:
    """Alerts ask for them; a round with a failure does not count as a decision on everything."""
    figures.needs("ingest", 4, "")
    figures.round([TopicFigures("ingest", "orders", 3, 70)], complete=False)
    text = get(server, "metrics")[1]
    assert 'azimuth_scaling_agents_needed{group="ingest"} 4.0' in text
    assert 'azimuth_scaling_workers{group="ingest",topic="orders"} 3.0' in text
    assert 'azimuth_scaling_lag_records{group="ingest",topic="orders"} 70.0' in text
    assert "azimuth_scaling_failed_rounds_total 1.0" in text
    assert "azimuth_scaling_decided_timestamp_seconds 0.0" in text
    figures.round([], complete=True)
    text = get(server, "metrics")[1]
    assert "azimuth_scaling_rounds_total 2.0" in text
    assert "azimuth_scaling_decided_timestamp_seconds 0.0" not in text


def test_an_autoscaler_whose_rounds_stop_is_not_healthy() -> None:
    """Only a restart helps then."""
    stuck = ScalingFigures(30.0)
    assert stuck.turns
    stuck._turned -= 121.0
    assert not stuck.turns
    slow = ScalingFigures(3600.0)
    slow._turned -= 7200.0
    assert slow.turns
