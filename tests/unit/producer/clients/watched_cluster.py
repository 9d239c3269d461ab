"""A cluster whose leaders a watcher reads, as a client without brokers."""

import threading
import time
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from producer.clients.leader_watcher import LeaderWatcher
from producer.decisions.producer_settings import ZonePolicy
from producer.metadata_requests import Topology
from producer.partitioning.topics_in_use import TopicsInUse


class Cluster:
    """A cluster of brokers 1 (az-a) and 2 (az-b); notes each question and how long it may take."""

    def __init__(self, **topics: list[int]) -> None:
        self.leaders = topics
        self.asked: list[str | None] = []
        self.allowed_s: list[float] = []
        self.answers = True

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Answer for one topic, or for all; a cluster that does not answer takes the time that it is given."""
        self.asked.append(topic)
        if not self.answers:
            if threading.current_thread().name != "azimuth-leaders":
                self.allowed_s.append(timeout)
            time.sleep(timeout)
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        names = self.leaders if topic is None else {topic} & self.leaders.keys()
        return SimpleNamespace(topics={name: self._topic(self.leaders[name]) for name in names})

    def _topic(self, leaders: list[int]) -> SimpleNamespace:
        partitions = {
            number: SimpleNamespace(leader=leader, replicas=[leader]) for number, leader in enumerate(leaders) if leader
        }
        return SimpleNamespace(partitions=partitions, error=None)


def watching(cluster: Cluster, racks: dict[int, str | None] | None = None, **more: Any) -> LeaderWatcher:
    """Watch it from az-a."""
    topology = Topology({}, {1: "az-a", 2: "az-b"} if racks is None else racks, timeout_s=0.2)
    return LeaderWatcher(lambda: cluster, TopicsInUse(ZonePolicy(rack="az-a")), topology, **more)
