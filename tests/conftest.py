"""Fixtures for all tests, and the last line of a run, with the tests left out."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from spark_sink.demo.cluster import Cluster

# Examples have no deadline, because a slow answer on a busy machine is not wrong. Before a change lands, each run draws
# the same examples: a new example that fails says something of the code, but nothing of the change.
settings.register_profile(
    "azimuth",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="AZIMUTH_SAME_EXAMPLES" in os.environ,
)
settings.load_profile("azimuth")


# Seconds since 1970. A run before a landing ends in time on a slow machine, too, and lists what it did not reach.
_UNTIL = float(os.environ.get("AZIMUTH_TESTS_UNTIL", "inf"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Start no test after the time that AZIMUTH_TESTS_UNTIL gives, and no fixture of one."""
    if time.time() > _UNTIL:
        pytest.skip("the time for this run was over: run `make test-slow`")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the skipped tests and how to run them: a plain count would look as if nothing were missing."""
    skipped = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    for reason, tests in sorted(skipped.items()):
        terminalreporter.write_line(f"left out: {tests} test{'s' * (tests > 1)}, {reason}", yellow=True)


def _reason(report: pytest.TestReport) -> str:
    """Return the reason of a skip; pytest passes (file, line, text)."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One three-zone Kafka for all integration tests of a run: use unique names for topics and groups.

    A test that kills a broker restarts it before its end. If AZIMUTH_TEST_CLUSTER names the folder of a running cluster
    (`azimuth cluster up --dir`), the tests use that cluster and leave it running.
    """
    standing = os.environ.get("AZIMUTH_TEST_CLUSTER")
    if standing:
        yield Cluster.open(Path(standing))
        return
    with Cluster.up(Path(tmp_path_factory.mktemp("kafka")) / "cluster", tied=True) as started:
        yield started
