"""When leaders are read, and the leaders in use after a failed request."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from producer import MetadataError, RackWarning, Reason
from producer.clients.leader_watcher import LeaderWatcher
from producer.decisions.producer_settings import ZonePolicy
from producer.decisions.sticky import chance
from producer.metadata_requests import Topology
from producer.partitioning.partition_of_record import TopicPartitioner
from producer.partitioning.topics_in_use import TopicsInUse
from producer.testing import MockCluster
from tests.unit.producer.clients.watched_cluster import Cluster, watching


class Large:
    """A cluster whose metadata takes a while to read, as that of ten thousand topics."""

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ARG002 - Lister's
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


@pytest.mark.usefixtures("no_thread")
@pytest.mark.parametrize("topic", ["away", "absent"])
def test_a_topic_that_stays_away_is_asked_for_alone_and_less_and_less_often(topic: str) -> None:
    """The whole cluster was listed each second for ever; a change brings the short interval back."""
    cluster = Cluster(home=[1, 2], away=[2, 2])
    watcher = watching(cluster)
    watcher.load("home")
    watcher.load(topic)
    watcher.read_due()
    cluster.asked.clear()
    waits = []
    for _ in range(10):
        waits.append(watcher.wait_s())
        watcher.read_due()
    assert set(cluster.asked) == {topic}
    assert waits == sorted(waits)
    assert waits[-1] == 30.0
    assert sum(waits[:5]) > 30
    cluster.leaders[topic] = [2, 1]
    watcher.read_due()
    assert watcher.wait_s() == (1.0 if topic == "away" else 30.0)  # one waits out the hold, the other is at home


@pytest.mark.usefixtures("no_thread")
def test_many_topics_that_are_due_at_once_are_asked_for_by_name(mock: MockCluster) -> None:
    """More than 16 listed the whole cluster again and again; one request names them, also those that do not exist."""
    topics = [f"away-{number}" for number in range(40)]
    for topic in topics[:-1]:
        mock.create(topic, [2, 3, None])
    mock.refuse(topics[0], KafkaError.TOPIC_AUTHORIZATION_FAILED)
    listed: list[str | None] = []
    # A question by name would create the topic that must stay away.
    settings: dict[str, Any] = {
        "bootstrap.servers": mock.bootstrap_servers,
        "log_level": 0,
        "allow.auto.create.topics": False,
    }
    admin = AdminClient(settings)

    class Noting:
        """The producer's handle; notes what is asked through it."""

        def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
            listed.append(topic)
            return admin.list_topics(timeout=timeout) if topic is None else admin.list_topics(topic, timeout)

    client = Noting()
    topology = Topology({"bootstrap.servers": mock.bootstrap_servers}, timeout_s=10.0)
    watcher = LeaderWatcher(lambda: client, TopicsInUse(ZonePolicy(rack="az-a", hold_s=0.0)), topology)
    for topic in topics:
        watcher.load(topic)
    listed.clear()
    mock.lead(topics[1], [2, 1, None])
    mock.refuse(topics[0], 0)
    watcher.refresh_soon()
    assert watcher.read_due()
    assert listed == []
    partitioners = watcher._topics_in_use.partitioners
    assert partitioners.keys() == set(topics[:-1])
    assert partitioners[topics[1]].leaders == (2, 1, None)
    assert partitioners[topics[1]].locality.reason is Reason.LOCAL
    assert watcher._missing == {topics[-1]}


@pytest.mark.usefixtures("no_thread")
def test_many_topics_of_a_cluster_that_stops_answering_keep_their_leaders() -> None:
    """A request that fails is no answer that the topics are gone."""
    cluster = Cluster(**{f"t{number}": [2, 2] for number in range(20)})
    topology = Topology({"bootstrap.servers": "127.0.0.1:1"}, {1: "az-a", 2: "az-b"}, timeout_s=0.2)
    watcher = LeaderWatcher(lambda: cluster, TopicsInUse(ZonePolicy(rack="az-a")), topology)
    for topic in cluster.leaders:
        watcher.load(topic)
    watcher.refresh_soon()
    with pytest.warns(RackWarning, match="leaders could not be read"):
        watcher.read_due()
    assert {one.leaders for one in watcher._topics_in_use.partitioners.values()} == {(2, 2)}
    assert watcher._missing == set()


@pytest.mark.usefixtures("no_thread")
def test_a_topic_may_be_loaded_while_leaders_are_read() -> None:
    """The thread ended without a word if another thread sent the first record of a topic at that moment."""
    watcher = watching(Cluster(home=[1, 2]))
    watcher.load("home")
    in_use = watcher._topics_in_use

    class Racing(TopicPartitioner):
        @property
        def leaders(self) -> tuple[int | None, ...]:
            in_use.update(f"topic {len(in_use.partitioners)}", [1], {1: "az-a"}, 0.0)
            return (1, 2)

        @leaders.setter
        def leaders(self, found: tuple[int | None, ...]) -> None:
            pass

    in_use.partitioners["racing"] = Racing("racing", in_use.policy, chance())
    assert watcher.read_due()


@pytest.mark.usefixtures("no_thread")
def test_a_failed_question_for_racks_keeps_leaders_and_known_racks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Good leaders were thrown away with it; it is asked again until it is answered."""
    answers: list[dict[int, str | None] | None] = [None, {1: "az-a", 2: "az-b"}, None, None, {3: "az-a"}]

    def read_racks(_config: object, _timeout_s: float) -> dict[int, str | None]:
        answer = answers.pop(0)
        if answer is None:
            raise MetadataError("no right to ask")
        return answer

    monkeypatch.setattr("producer.metadata_requests.read_racks", read_racks)
    cluster = Cluster(flights=[1, 2])
    watcher = LeaderWatcher(lambda: cluster, TopicsInUse(ZonePolicy(rack="az-a", hold_s=0.0)), Topology({}))
    with pytest.warns(RackWarning, match="no right to ask"):
        watcher.load("flights")
    partitioner = watcher._topics_in_use.partitioners["flights"]
    assert partitioner.leaders == (1, 2)
    assert watcher.wait_s() == 1.0
    watcher.read_due()
    assert list(partitioner.zones) == ["az-a", "az-b"]
    cluster.leaders["flights"] = [1, 3]
    for _ in range(2):
        watcher.refresh_soon()
        watcher.read_due()
        assert partitioner.leaders == (1, 3)
        assert list(partitioner.zones) == ["az-a", None]
    watcher.read_due()
    assert list(partitioner.zones) == ["az-a", "az-a"]
    assert answers == []


@pytest.mark.usefixtures("no_thread")
def test_partition_ids_may_have_gaps() -> None:
    """The answer of a broker in the middle of a deletion ended the thread."""
    watcher = watching(Cluster(flights=[1, 0, 1, 0, 2]))
    watcher.load("flights")
    assert watcher._topics_in_use.partitioners["flights"].leaders == (1, None, 1, None, 2)


@pytest.mark.usefixtures("no_thread")
def test_leaders_of_the_client_itself_are_taken_unless_a_reading_is_newer() -> None:
    """A report may have waited for a poll; data that it lacks change nothing."""
    watcher = watching(Cluster(flights=[1, 2]))
    watcher.load("flights")
    partitioner = watcher._topics_in_use.partitioners["flights"]
    watcher.take_leaders("flights", {0: 2, 1: 1}, time.monotonic() - 60)
    assert partitioner.leaders == (1, 2)
    watcher.take_leaders("flights", {0: 2, -1: -1, 7: 1}, time.monotonic())
    assert partitioner.leaders == (2, 2)
    watcher.take_leaders("flights", {0: -1, 1: -1}, time.monotonic())
    assert partitioner.leaders == (2, 2)
    watcher._wake.clear()
    watcher.take_leaders("flights", {0: 9}, time.monotonic())  # its rack is not known: the thread asks
    assert partitioner.leaders == (2, 2)
    assert watcher._wake.is_set()
