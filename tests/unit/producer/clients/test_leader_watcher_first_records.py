"""The first record of a topic: what is asked for it, and how long it waits."""

import threading
import time
from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from producer import MetadataError, RackWarning
from producer.clients import leader_requests
from producer.clients.call_apart import call_apart
from producer.clients.leader_watcher import LeaderWatcher
from producer.decisions.producer_settings import ZonePolicy
from producer.metadata_requests import Topology, read_leaders_of
from producer.partitioning.topics_in_use import TopicsInUse
from tests.unit.producer.clients.watched_cluster import Cluster, watching
from tests.waiting import wait_until


class Unreachable:
    """A client of a cluster that does not answer; notes which thread had to wait."""

    def __init__(self) -> None:
        self.waited: list[threading.Thread] = []

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ARG002 - Lister's
        """Give up."""
        self.waited.append(threading.current_thread())
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))


@pytest.mark.parametrize("topic", ["flights", "signals"])
def test_a_signal_handler_does_not_wait_for_leaders_that_its_thread_waits_for(
    monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    """Each call of the handler would wait as long as the first one, and the next signal would interrupt it."""
    watcher = watching(Cluster(flights=[1, 2], signals=[1, 2]))
    readings = 0

    def interrupted(read: Callable[[], Any]) -> Any:
        nonlocal readings
        readings += 1
        if readings < 10:
            watcher.load(topic)  # as the handler's `produce`
        return call_apart(read)

    monkeypatch.setattr(leader_requests, "call_apart", interrupted)
    watcher.load("flights")
    assert readings == 1
    assert not watcher.must_load("flights")
    watcher.load(topic)
    assert not watcher.must_load(topic)
    watcher.close()


def test_only_the_first_record_of_a_topic_waits_for_a_cluster_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """All later ones go where librdkafka puts them at once; the thread asks on."""
    monkeypatch.setattr(leader_requests, "_PAUSE_S", 0.0)
    client = Unreachable()
    in_use = TopicsInUse(ZonePolicy(rack="az-a"))
    watcher = LeaderWatcher(lambda: client, in_use, Topology({}), away_s=0.001, refresh_s=0.01)
    with pytest.warns(RackWarning, match="leaders could not be read"):
        watcher.load("flights")
    end = time.monotonic() + 10
    while len(client.waited) < 20 and time.monotonic() < end:
        watcher.load("flights")
    watcher.close()
    assert len(client.waited) >= 20
    assert sum(thread.name != "azimuth-leaders" for thread in client.waited) == 1


@pytest.mark.usefixtures("no_thread")
def test_all_topics_are_listed_once_for_first_records() -> None:
    """Each topic that the last listing lacked, as one just created, had the whole cluster listed again."""
    cluster = Cluster(home=[1, 2], away=[2, 2])
    watcher = watching(cluster)
    watcher.load("home")
    watcher.load("away")
    cluster.leaders["new"] = [1]
    for topic in ("new", "absent"):
        watcher.load(topic)
    assert cluster.asked == ["home", None, "new", "absent"]
    watcher._listed_at -= 60.0
    cluster.leaders["later"] = [2]
    watcher.load("later")
    assert cluster.asked[4:] == ["later"]
    partitioners = watcher._topics_in_use.partitioners
    assert {name: one.leaders for name, one in partitioners.items()} == {
        "home": (1, 2),
        "away": (2, 2),
        "new": (1,),
        "later": (2,),
    }
    assert watcher._missing == {"absent"}


@pytest.mark.usefixtures("no_thread")
def test_a_topic_that_is_loaded_while_it_is_away_wakes_the_thread() -> None:
    """It slept for 30 s, because nothing was away when it fell asleep."""
    watcher = watching(Cluster(home=[1, 2], away=[2, 2]))
    watcher.load("home")
    assert not watcher._wake.is_set()
    watcher.load("away")
    assert watcher._wake.is_set()
    assert watcher.wait_s() == 1.0


@pytest.mark.usefixtures("no_thread")
def test_all_topics_together_wait_once_for_a_cluster_that_does_not_answer() -> None:
    """Each of 224 topics blocked its first record for 10 s: 37 minutes."""
    cluster = Cluster(**{f"t{number}": [1, 2] for number in range(16)})
    cluster.answers = False
    watcher = watching(cluster)
    first, *others = cluster.leaders
    with pytest.warns(RackWarning, match="leaders could not be read"):
        watcher.load(first)
    for topic in others:
        watcher.load(topic)
    assert 0.2 <= sum(cluster.allowed_s) <= 0.25
    cluster.answers = True
    watcher.read_due()
    assert watcher._topics_in_use.partitioners.keys() == cluster.leaders.keys()


@pytest.mark.usefixtures("no_thread")
def test_all_topics_together_wait_once_for_racks_that_no_broker_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaders come from any broker and racks from the controller: each topic's first record waited for it again."""
    cluster = Cluster(**{f"t{number}": [1, 2] for number in range(6)})
    waited_s: list[float] = []
    answers = False

    def read_racks(_config: object, timeout_s: float) -> dict[int, str | None]:
        if answers:
            return {1: "az-a", 2: "az-b"}
        waited_s.append(timeout_s)
        time.sleep(timeout_s)
        raise MetadataError("the controller is away")

    monkeypatch.setattr("producer.metadata_requests.read_racks", read_racks)
    watcher = LeaderWatcher(lambda: cluster, TopicsInUse(ZonePolicy(rack="az-a")), Topology({}, timeout_s=0.2))

    def load_all() -> None:
        for topic in cluster.leaders:
            watcher.load(topic)
            watcher._listed_at = -inf  # as topics whose first records come minutes apart

    with pytest.warns(RackWarning, match="the controller is away"):
        load_all()
    assert 0.1 < sum(waited_s) <= 0.2
    partitioners = watcher._topics_in_use.partitioners
    assert partitioners.keys() == cluster.leaders.keys()
    assert watcher._wake.is_set()
    assert watcher.wait_s() == 1.0
    answers = True
    watcher.read_due()
    assert {one.zones for one in partitioners.values()} == {("az-a", "az-b")}
    cluster.leaders["later"] = [2, 1]
    watcher.load("later")
    assert partitioners["later"].zones == ("az-b", "az-a")


@pytest.mark.usefixtures("no_thread")
def test_many_threads_read_a_new_topic_once() -> None:
    """Each of 30 threads asked the cluster for the same topic."""
    go, began = threading.Event(), []

    class Slow(Cluster):
        def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
            found = super().list_topics(topic, timeout)
            go.wait(30)
            return found

    cluster = Slow(home=[1, 2])
    watcher = watching(cluster)

    def load() -> None:
        began.append(True)
        watcher.load("home")

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    wait_until(lambda: bool(cluster.asked) and len(began) == len(threads))
    go.set()
    for thread in threads:
        thread.join()
    assert cluster.asked == ["home"]
    assert watcher._topics_in_use.partitioners["home"].leaders == (1, 2)


@pytest.mark.usefixtures("no_thread")
@pytest.mark.parametrize("topic", ["", "a b", "ä", ".", "..", "a/b", "t" * 250, "a\0b", "\ud800"], ids=ascii)
def test_a_name_that_no_topic_can_have_is_not_asked_for(topic: str) -> None:
    """The client refuses some beside many others, and the thread that asked ended; others are known as missing then.

    So `produce` raised an error ("Unknown topic") where the bare client's first record gets a delivery report ("Invalid
    topic").
    """
    cluster = Cluster()
    watcher = watching(cluster)
    watcher.load(topic)
    watcher.load_later(topic)
    assert not watcher.must_load(topic)
    assert cluster.asked == []
    assert watcher._missing == watcher._later == set()


def test_an_empty_name_is_refused_beside_others() -> None:
    """The client's own error is the cause."""
    with pytest.raises(MetadataError, match="Empty topic name"):
        read_leaders_of({"bootstrap.servers": "127.0.0.1:1"}, ["", "flights"], 0.1)
