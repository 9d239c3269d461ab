"""The compose file: Prometheus scrapes all that runs, every table has each record once, the dashboard has results."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_sink.lake.holes_and_doubles import verify
from tests.docker.composed import ROOT, Composed, NotHereError, ask, compose_command, prometheus_image, ready

pytestmark = pytest.mark.docker

AGENTS = {"agent-1:9464", "agent-2:9464"}
FLEET = {"fleet-1:8080", "fleet-2:8080"}
CLAIMS = {"claims-1:9464", "claims-2:9464"}
AUTOSCALER = {"autoscaler:8080"}
# A table and the group of its positions.
TABLES = {"flights": "ingest", "fleet": "fleet", "claims": "claims"}
# Of both agents, once both have written.
NUMBERS = (
    "azimuth_rows_total > 0",
    "azimuth_commits_total > 0",
    "azimuth_freshness_seconds > 0",
    "azimuth_partitions > 0",
    "azimuth_generation > 0",
    "sum by (instance) (azimuth_lag_records)",
)
# The compose file runs no producer with metrics, so these panels are empty here.
ELSEWHERE = ("azimuth_producer_",)
PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tables."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def composed(lake: Path) -> Iterator[Composed]:
    """The compose file with the profile `metrics`, ingesting the demo's flights."""
    if not os.environ.get("AZIMUTH_DOCKER_TEST"):
        pytest.skip("needs a Docker engine: run `make docker-test`")
    try:
        command, prometheus = compose_command(), prometheus_image()
    except NotHereError as error:
        pytest.skip(str(error))
    with Composed(command, prometheus, lake) as up:
        ready(PATIENCE_S)
        yield up


def _until(composed: Composed, expression: str, instances: set[str], *, feed: bool = False) -> float:
    """Wait until an expression has a value for each of the instances; seconds that it took.

    Where `feed` is set, flights come until then: the agent that was first may have read all of them alone, and one that
    has joined since knows of no partition before there is something to read.
    """
    begun = time.monotonic()
    while instances - (found := {str(one["metric"].get("instance")) for one in ask(expression)}):
        if time.monotonic() - begun > PATIENCE_S:
            pytest.fail(f"{expression}: only of {sorted(found)} in {PATIENCE_S:g} s\n{composed.logs()}")
        if feed:
            composed.load(30_000)
        time.sleep(1)
    return time.monotonic() - begun


def test_both_agents_are_up_and_tell_what_they_do(composed: Composed) -> None:
    """A wrong port, address or metric name would leave the dashboard empty, and no test of the agent would show it."""
    sys.stdout.write(f"both up after {_until(composed, 'up == 1', AGENTS):.0f} s\n")
    for expression in NUMBERS:
        seconds = _until(composed, expression, AGENTS, feed=True)
        values = {one["metric"]["instance"]: one["value"][1] for one in ask(expression)}
        sys.stdout.write(f"{expression}: {values}, {seconds:.0f} s later\n")


def test_fleet_claims_and_autoscaler_are_scraped_and_work(composed: Composed) -> None:
    """Beside the Spark agents, with the same brokers."""
    for instances, expression in (
        (FLEET, "azimuth_fleet_ready == 1"),
        (FLEET, "azimuth_fleet_rows_total > 0"),
        (CLAIMS, "azimuth_claims_rows_total > 0"),
        (AUTOSCALER, "azimuth_scaling_agents_needed > 0"),
    ):
        _until(composed, expression, instances, feed="rows" in expression)


def test_no_table_has_lost_or_doubled_a_record(composed: Composed, lake: Path) -> None:
    """Three ways to ingest the same topics: the same number of rows, without a hole and without a duplicate."""
    begun = time.monotonic()
    while True:
        found = {name: verify(str(lake / name), group) for name, group in TABLES.items()}
        if len({report.rows for report in found.values()}) == 1:
            break
        assert time.monotonic() - begun < PATIENCE_S, f"{found}\n{composed.logs()}"
        time.sleep(2)
    assert {(report.duplicates, report.missing) for report in found.values()} == {(0, 0)}
    sys.stdout.write(f"{found['fleet'].rows} rows in each of {len(found)} tables: 0 lost, 0 doubled\n")


def test_every_question_of_the_dashboard_is_answered(composed: Composed) -> None:
    """All expressions are PromQL; only those on fleets and producers, which do not run here, are empty."""
    panels = json.loads((ROOT / "docker" / "grafana.json").read_text(encoding="utf-8"))["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    begun = time.monotonic()
    expected = {one for one in expressions if any(name in one for name in ELSEWHERE)}
    while (empty := {one for one in expressions if not ask(one)}) - expected:
        assert time.monotonic() - begun < PATIENCE_S, f"no answer to {empty - expected}\n{composed.logs()}"
        time.sleep(1)
    sys.stdout.write(f"{len(expressions)} expressions, {len(empty)} of them on what does not run here\n")
    assert empty == expected
