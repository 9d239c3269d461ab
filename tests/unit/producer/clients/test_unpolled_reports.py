"""Reports that wait because the application does not poll."""

import warnings

import pytest

from producer import PollWarning
from producer.clients import unpolled_reports
from producer.clients.client_statistics import Statistics
from producer.decisions.producer_settings import ZonePolicy
from producer.metadata_requests import Topology
from producer.partitioning.topics_in_use import TopicsInUse
from tests.unit.producer.clients.watched_cluster import Cluster, watching


def test_an_application_that_does_not_poll_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics wait for it in memory; where there are none, nothing waits."""
    monkeypatch.setattr(unpolled_reports, "_SILENT_S", 0.0)
    monkeypatch.setattr(unpolled_reports, "_GRACE_S", 0.0)
    watcher = watching(Cluster())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watcher.read_due()
    watcher.reports.expect(600.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # statistics may be as seldom as that
        watcher.read_due()
    watcher.reports.expect(0.0)
    with pytest.warns(PollWarning, match=r"call poll\(0\) regularly, or set statistics.interval.ms to 0"):
        watcher.read_due()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watcher.read_due()


@pytest.mark.parametrize(("interval", "silent"), [(5000, True), (0, False), ("0", False)])
def test_statistics_that_are_off_are_not_waited_for(interval: int | str, silent: bool) -> None:  # noqa: FBT001 - a case
    """An application may do without them, and without polling."""
    watcher = watching(Cluster())
    Statistics(TopicsInUse(ZonePolicy(rack="az-a")), watcher, Topology({})).with_callbacks(
        {"statistics.interval.ms": interval}
    )
    assert watcher.reports.are_expected == silent
