"""The only broker of a zone dies under load and comes back: nothing lost, nothing twice, no error, home again."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, ElectionType, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from producer import AZAwareProducer, Reason
from spark_sink.demo.cluster import Cluster
from tests.integration.producer.conftest import MakeTopic, leaders
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]
PARTITIONS = 6
HOME_AGAIN_S = 30.0


class Load:
    """Numbered records at a steady rate from a thread, with and without keys, and what became of them."""

    def __init__(self, producer: AZAwareProducer, topic: str) -> None:
        self.producer = producer
        self.topic = topic
        self.sent = 0
        self.acknowledged = 0
        self.errors: list[object] = []
        self.reasons: list[Reason] = []

    def delivered(self, error: KafkaError | None, _message: Message) -> None:
        """Count a report."""
        if error is not None:
            self.errors.append(error)
        self.acknowledged += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send until the block ends, then wait for every acknowledgement."""
        stop = threading.Event()
        thread = threading.Thread(target=self._send, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        assert self.producer.flush(60) == 0

    def _send(self, stop: threading.Event) -> None:
        while not stop.wait(0.01):
            for _ in range(20):
                key = f"{self.sent}" if self.sent % 2 else None
                try:
                    self.producer.produce(self.topic, f"{self.sent}", key, on_delivery=self.delivered)
                except Exception as error:  # noqa: BLE001 - any error to the caller fails the test
                    self.errors.append(error)
                self.sent += 1
            self.producer.poll(0)
            self._read_metadata()
        self._read_metadata()  # it may have come home since

    def _read_metadata(self) -> None:
        reason = self.producer._kafka_azimuth.topics_in_use.partitioners[self.topic].locality.reason
        if not self.reasons or self.reasons[-1] is not reason:
            self.reasons.append(reason)


def read_numbers(cluster: Cluster, topic: str, count: int) -> Counter[bytes]:
    """Read the topic to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    places = [TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(place, timeout=10)[1] for place in places]
    consumer.assign(places)
    seen: Counter[bytes] = Counter()
    deadline = time.monotonic() + 60
    while seen.total() < max(count, sum(ends)) and time.monotonic() < deadline:
        seen.update(message.value() or b"" for message in consumer.consume(10_000, 1))
    consumer.close()
    return seen


def fail_and_return(cluster: Cluster, admin: AdminClient, topic: str, load: Load) -> float:
    """Kill the broker of az-a, wait for the fallback, bring it back; return seconds from its leaders to ours."""
    partitioner = load.producer._kafka_azimuth.topics_in_use.partitioners[topic]
    cluster.kill(1)
    wait_until(lambda: partitioner.locality.reason is Reason.NO_LOCAL_LEADER, 60)
    before = load.acknowledged
    wait_until(lambda: load.acknowledged > before + 500)
    cluster.start(1)
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]

    def home() -> bool:
        admin.elect_leaders(ElectionType.PREFERRED, places).result(10)
        return leaders(admin, topic).count(1) == PARTITIONS // 3

    wait_until(home, 60)
    returned = time.monotonic()
    wait_until(lambda: partitioner.locality.reason is Reason.LOCAL, HOME_AGAIN_S)
    return time.monotonic() - returned


def survive_failures(cluster: Cluster, admin: AdminClient, topic: str, rounds: int) -> dict[str, object]:
    """Run the load through some failures and account for every record."""
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "client.rack": "az-a",
        "enable.idempotence": True,
        "linger.ms": 5,
        "log_level": 0,
    }
    producer = AZAwareProducer(config, keys="local-hrw")
    producer.produce(topic, b"first")
    producer.flush(30)
    # A broker that has not yet heard of a new topic answers that there is none, and the watcher asks again.
    wait_until(lambda: topic in producer._kafka_azimuth.topics_in_use.partitioners)
    load = Load(producer, topic)
    with load.running():
        wait_until(lambda: load.acknowledged > 100)
        seconds = [fail_and_return(cluster, admin, topic, load) for _ in range(rounds)]
    wait_until(lambda: producer.flush(1) == 0)
    traffic = producer.traffic()
    producer.close()
    seen = read_numbers(cluster, topic, load.sent + 1)
    expected = {b"first", *(b"%d" % number for number in range(load.sent))}
    return {
        "sent": load.sent + 1,
        "lost": len(expected - seen.keys()),
        "duplicated": seen.total() - len(seen),
        "errors": load.errors,
        "home_again_s": seconds,
        "reasons": load.reasons,
        "traffic": traffic,
    }


def test_a_zone_dies_and_returns_under_load(cluster: Cluster, admin: AdminClient, make_topic: MakeTopic) -> None:
    """0 lost, 0 duplicated, 0 errors; away once and back once, at most 30 s after the leaders are."""
    topic = make_topic(PARTITIONS, 3)
    result = survive_failures(cluster, admin, topic, rounds=1)
    assert (result["lost"], result["duplicated"], result["errors"]) == (0, 0, [])
    reasons = result["reasons"]
    assert isinstance(reasons, list)
    away = [after for before, after in itertools.pairwise(reasons) if before is Reason.LOCAL]
    assert reasons[0] is reasons[-1] is Reason.LOCAL
    assert len(away) == 1
