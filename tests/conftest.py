"""Fixtures for all tests, and the last line of a run: what it left out."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from spark_sink.demo.cluster import Cluster

# No example has a deadline: what is slow on a busy machine is no wrong answer.
settings.register_profile("azimuth", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("azimuth")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped and how to get it: a bare count of skipped tests reads as if nothing were missing."""
    skipped = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    for reason, tests in sorted(skipped.items()):
        terminalreporter.write_line(f"left out: {tests} test{'s' * (tests > 1)}, {reason}", yellow=True)


def _reason(report: pytest.TestReport) -> str:
    """The reason of a skip; pytest hands over (file, line, text)."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One three-zone Kafka for all integration tests of a run: name your topics and groups so that they are yours.

    A test that kills a broker starts it again before it ends. Where AZIMUTH_TEST_CLUSTER names the folder of a cluster
    that is up (`azimuth cluster up --directory`), that one is used and left up.
    """
    standing = os.environ.get("AZIMUTH_TEST_CLUSTER")
    if standing:
        yield Cluster.open(Path(standing))
        return
    with Cluster.up(Path(tmp_path_factory.mktemp("kafka")) / "cluster", tied=True) as started:
        yield started
