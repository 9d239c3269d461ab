"""`AZAwareProducer` as a `confluent_kafka.Producer`, on librdkafka's mock cluster."""

import gc
import logging
import threading
import time
from collections import Counter
from enum import Enum
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from producer import AZAwareProducer, PolicyError, RackWarning
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("hot")


def test_configuration_may_come_as_keywords(mock: MockCluster) -> None:
    """As in the base class: all of it, or some in addition to a dictionary, which the keywords override."""
    more: dict[str, Any] = {"client.rack": "az-a"}
    for producer in (
        AZAwareProducer(**config(mock)),
        AZAwareProducer(config(mock, **{"client.rack": "az-b"}), **more),
    ):
        assert producer._kafka_azimuth.topics_in_use.policy.rack == "az-a"
        producer.close()


def test_a_zone_may_be_a_number(mock: MockCluster) -> None:
    """As in the base class, which makes it text: a zone of Azure is 1, 2 or 3."""
    with AZAwareProducer(config(mock, **{"client.rack": 2})) as producer:
        assert producer.traffic().rack == "2"


@pytest.mark.parametrize(
    ("rack", "arguments", "says"),
    [
        ("az-a", {"keys": "nearest"}, "'global', 'local-mod', 'local-hrw'"),
        (" ", {}, "empty"),
        (b"az-a", {}, "rack=b'az-a', need text"),
        ("az-a", {"fallback": "az-b"}, r"need a list of zones: \['az-b'\]"),
        ("az-a", {"batch_bytes": 0}, "batch_bytes=0"),
        ("az-a", {"hold_s": float("nan")}, "hold_s=nan"),
        ("az-a", {"keys": {rb"logs\..*": "ignore"}}, "the pattern must be text, not bytes"),
        ("az-a", {"keys": {"logs": ["ignore"]}}, "is not a key mode"),
        ("az-a", {"fallback": 5}, "fallback=5, need a list of zones"),
        ("az-a", {"fallback": [b"az-b"]}, "need a list of zones as texts"),
        ("az-a", {"skew": 1.2}, "skew=1.2, need a SkewGuard"),
        ("az-a", {"racks": {"1": "az-a"}}, "racks={'1': 'az-a'}, need a mapping of broker ids"),
        ("az-a", {"racks": ["az-a"]}, "need a mapping of broker ids"),
        ("az-a", {"count": ["queued"]}, "choose 'queued' or 'delivered'"),
        *(
            ("az-a", {name: "100"}, f"{name}='100', need a number, not str")
            for name in ("availability_timeout_ms", "batch_bytes", "hold_s", "refresh_s", "metadata_timeout_s")
        ),
        *(
            ("az-a", {name: value}, f"{name}={value}, need .* or more")
            for name in ("availability_timeout_ms", "batch_bytes", "hold_s", "refresh_s", "metadata_timeout_s")
            for value in (float("nan"), float("inf"), -1)
        ),
        ("az-a", {"refresh_s": 0}, "refresh_s=0, need 0.001 or more"),
        ("az-a", {"metadata_timeout_s": 1e6}, "at most 3,600"),
        ("az-a", {"batch_bytes": 1 << 62}, "at most 1,099,511,627,776"),
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_named_before_anything_starts(
    rack: object, arguments: dict[str, Any], says: str
) -> None:
    """Value, place and way out, as one error of the package."""
    with pytest.raises(PolicyError, match=says):
        AZAwareProducer({"bootstrap.servers": "127.0.0.1:1", "client.rack": rack}, **arguments)


def test_the_applications_own_callbacks_are_still_called(mock: MockCluster) -> None:
    """Statistics and errors pass through; ours come first."""
    mock.create(TOPIC, [1])
    reports: list[object] = []
    settings = config(mock, **{"statistics.interval.ms": 20, "stats_cb": reports.append, "error_cb": reports.append})
    producer = AZAwareProducer(settings, metadata_timeout_s=1.0)
    producer.produce(TOPIC, b"v")
    wait_until(lambda: producer.poll(0.01) >= 0 and bool(reports))
    assert producer.flush(10) == 0
    for broker in mock.racks:
        mock.down(broker)
    wait_until(lambda: producer.poll(0.01) >= 0 and any(isinstance(one, KafkaError) for one in reports))
    producer.close()


@pytest.mark.parametrize(
    ("setting", "error"),
    [({"stats_cb": 5}, TypeError), ({"error_cb": "x"}, TypeError), ({"batch.size": "many"}, KafkaException)],
    ids=["stats_cb", "error_cb", "batch.size"],
)
def test_a_setting_that_the_client_refuses_is_refused_by_its_name(
    setting: dict[str, Any], error: type[Exception]
) -> None:
    """When the producer is made, as a bare one, and not at some later `poll`."""
    with pytest.raises(error, match=next(iter(setting))):
        AZAwareProducer({"bootstrap.servers": "127.0.0.1:1", "client.rack": "az-a", **setting})


def test_a_logger_may_be_given_as_to_the_base_class(caplog: pytest.LogCaptureFixture) -> None:
    """It takes the client's lines while the application polls."""
    logger = logging.getLogger("of the application")
    producer = AZAwareProducer({"bootstrap.servers": "127.0.0.1:1", "client.rack": "az-a"}, logger=logger)
    wait_until(lambda: producer.poll(0.01) >= 0 and "Connect" in caplog.text)
    producer.close()


def test_threads_share_a_producer_without_losing_a_count(mock: MockCluster) -> None:
    """Eight threads, one topic: every record is counted once and stays local."""
    mock.create(TOPIC, [1, 2, 3] * 2)
    producer = AZAwareProducer(config(mock), keys="local-hrw", batch_bytes=100)
    producer.produce(TOPIC, b"v" * 10)

    def send(number: int) -> None:
        for one in range(5_000):
            producer.produce(TOPIC, b"v" * 10, f"{number}-{one}" if one % 2 else None)
            if one % 1_000 == 0:
                producer.traffic()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert producer.flush(20) == 0
    assert producer.traffic().local.records == 40_001
    assert producer.traffic().cross.records == 0
    producer.close()


class Topic(str, Enum):  # noqa: UP042 - `str` of a `StrEnum` is its value
    """Names of topics; `str` of a member is not its value."""

    FLIGHTS = TOPIC
    WEATHER = "weather"


def test_a_topic_may_be_a_member_of_an_enumeration_of_texts(mock: MockCluster) -> None:
    """As with the bare client, for each way to send, for a first and a second topic, and after a leader moved."""
    producer = AZAwareProducer(config(mock))
    for name in Topic:
        mock.create(name.value, [1, 2, 3])
        producer.produce(name, b"v", partition=0)
        producer.produce(name, b"v")
        producer.produce(name, "v", "k", on_delivery=lambda *_: None)
        assert producer.produce_batch(name, [{"value": b"v"}]) == 1
    mock.lead(TOPIC, [2, 3, 1])
    destinations = producer._kafka_azimuth_destinations[TOPIC]
    producer.refresh_leaders()
    wait_until(lambda: producer._kafka_azimuth_destinations[TOPIC] is not destinations)
    producer.produce(Topic.FLIGHTS, b"v")
    assert producer.flush(10) == 0
    counted = Counter[str]()
    for (topic, _), count in producer.traffic().topics.items():
        assert type(topic) is str
        counted[topic] += count.records
    assert counted == {TOPIC: 5, "weather": 4}
    producer.close()


def test_a_forgotten_producer_ends_its_thread(mock: MockCluster) -> None:
    """No close, no leak: the watching thread holds no reference to the producer."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock), refresh_s=0.05)
    producer.produce(TOPIC, b"v")
    producer.flush(10)
    thread = producer._kafka_azimuth.watcher._thread
    assert thread is not None
    del producer
    gc.collect()
    wait_until(lambda: not thread.is_alive())


def test_a_forgotten_producer_ends_the_sleep_of_its_thread(mock: MockCluster) -> None:
    """Many producers that come and go would leave a thread each, for half a minute."""
    mock.create(TOPIC, [1])
    producer = AZAwareProducer(config(mock), refresh_s=1_000.0)
    producer.produce(TOPIC, b"v")
    producer.flush(10)
    thread, asleep = producer._kafka_azimuth.watcher._thread, producer._kafka_azimuth.watcher._wake
    assert thread is not None
    wait_until(lambda: not asleep.is_set())
    del producer
    gc.collect()
    wait_until(lambda: not thread.is_alive())


class Renamed(AZAwareProducer):
    """A subclass of an application, whose methods take other arguments than the base class's."""

    def list_topics(self) -> Any:  # type: ignore[override]
        """Refuse, as the producer itself needs it never."""
        raise NotImplementedError

    def poll(self, timeout_s: float, why: str) -> int:  # type: ignore[override]  # the point of the test
        """Refuse, as `list_topics`."""
        raise NotImplementedError(why)


def test_a_subclass_may_change_the_methods_that_the_producer_needs_itself(mock: MockCluster) -> None:
    """Its own readings and polls go to the base class, as the bare client's do not call a subclass either."""
    mock.create(TOPIC, [1, 2, 3])
    producer = Renamed(config(mock))
    producer.produce(TOPIC, b"v")
    assert producer._kafka_azimuth.watcher.reports._drain()
    assert producer.flush(10) == 0
    assert producer.traffic().local.records == 1
    producer.close()


@pytest.mark.parametrize("count", ["delivered", "queued"])
def test_a_default_callback_that_cannot_be_called_is_refused_by_its_name(mock: MockCluster, count: str) -> None:
    """By the client, however records are counted."""
    with pytest.raises(KafkaException, match="on_delivery"):
        AZAwareProducer(config(mock, on_delivery=5), count=count)


def test_the_mock_cluster_of_a_client_delays_no_record(recwarn: pytest.WarningsRecorder) -> None:
    """Only this client reaches the brokers of `test.mock.num.brokers`, so no second one waits for their racks."""
    settings = {"test.mock.num.brokers": 3, "client.rack": "az-a", "log_level": 0, "linger.ms": 1}
    with AZAwareProducer(settings, metadata_timeout_s=30) as producer:
        began = time.monotonic()
        producer.produce(TOPIC, b"v")
        assert time.monotonic() - began < 15
        assert producer.flush(10) == 0
        assert sum(one.records for one in producer.traffic().topics.values()) == 1
    assert [one.message for one in recwarn if issubclass(one.category, RackWarning)] == []


def test_it_works_as_a_context_manager(mock: MockCluster) -> None:
    """As the base class does: flushed at the end of the block."""
    mock.create(TOPIC, [1])
    seen = Deliveries()
    with AZAwareProducer(config(mock)) as producer:
        producer.produce(TOPIC, b"v", on_delivery=seen)
    assert seen.partitions == {0: 1}
