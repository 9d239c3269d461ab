"""Who waits for the leaders, and who does not."""

import threading
import time
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from producer import PollWarning, RackWarning
from producer.clients import leader_watcher as module
from producer.clients.client_statistics import Statistics
from producer.clients.leader_watcher import LeaderWatcher
from producer.decisions.producer_settings import ZonePolicy
from producer.partitioning.topics_in_use import TopicsInUse
from producer.topology import Topology


class Unreachable:
    """A client of a cluster that does not answer; notes which thread had to wait."""

    def __init__(self) -> None:
        self.waited: list[threading.Thread] = []

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ANN401, ARG002 - Lister's
        """Give up."""
        self.waited.append(threading.current_thread())
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))


def test_only_the_first_record_of_a_topic_waits_for_a_cluster_that_is_away() -> None:
    """All later ones go where librdkafka puts them at once; the thread asks on."""
    client = Unreachable()
    watcher = LeaderWatcher(lambda: client, TopicsInUse(ZonePolicy(rack="az-a")), Topology({}), away_s=0.001)
    with pytest.warns(RackWarning, match="leaders could not be read"):
        watcher.load("flights")
    end = time.monotonic() + 10
    while len(client.waited) < 20 and time.monotonic() < end:
        watcher.load("flights")
    watcher.close()
    assert len(client.waited) >= 20
    assert client.waited.count(threading.current_thread()) == 1


class Large:
    """A cluster whose metadata takes a while to read, as that of ten thousand topics."""

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ANN401, ARG002 - Lister's
        """Compute, and find nothing."""
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return SimpleNamespace(topics={})


def test_readings_of_a_large_cluster_leave_the_interpreter_to_others() -> None:
    """Once a second they would take most of its time as long as one topic is missing or away from its zone."""
    watcher = LeaderWatcher(Large, TopicsInUse(ZonePolicy(rack="az-a")), Topology({}), refresh_s=30.0, away_s=0.001)
    watcher.load("flights")
    assert 0.02 * 19 < watcher.wait_s() <= 30.0
    watcher.close()


def test_an_application_that_does_not_poll_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics wait for it in memory; where there are none, nothing waits."""
    monkeypatch.setattr(module, "_SILENT_S", 0.0)
    watcher = LeaderWatcher(Large, TopicsInUse(ZonePolicy(rack="az-a")), Topology({}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watcher.read_all()
    watcher.await_report(600.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # statistics may be as seldom as that
        watcher.read_all()
    watcher.await_report(0.0)
    with pytest.warns(PollWarning, match=r"call poll\(0\) now and then, or set statistics.interval.ms to 0"):
        watcher.read_all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watcher.read_all()


@pytest.mark.parametrize(("interval", "silent"), [(5000, True), (0, False), ("0", False)])
def test_statistics_that_are_off_are_not_waited_for(interval: int | str, silent: bool) -> None:  # noqa: FBT001 - a case
    """An application may do without them, and without polling."""
    watcher = LeaderWatcher(Large, TopicsInUse(ZonePolicy(rack="az-a")), Topology({}))
    Statistics(TopicsInUse(ZonePolicy(rack="az-a")), watcher, Topology({})).with_callbacks(
        {"statistics.interval.ms": interval}
    )
    assert (watcher._due_at is not None) == silent
