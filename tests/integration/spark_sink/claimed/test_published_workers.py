"""Published numbers on their way: Kafka, a Redis that tells of changes, and jobs that follow them."""

import functools
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assignors.scaling import KafkaLag, ScaledTopic, WorkersNews, WorkersPublisher, WorkersRecord
from spark_sink.claimed import published_workers
from spark_sink.claimed.published_workers import FollowedNumbers
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.spark_sink.claimed.test_once import Crontab
from tests.integration.spark_sink.fleet.fleet_process import delete_topics, make_topics, send
from tests.redis_server import RedisServer, running_redis
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.long]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis for one test."""
    with running_redis(tmp_path) as found:
        yield found


def test_a_change_arrives_within_a_second_while_redis_is_there(
    cluster: Cluster, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looks come every 60 s here, so only the news can be that fast. Without Redis a look finds the change."""
    monkeypatch.setattr(published_workers, "_INTERVAL_S", 60.0)
    kafka, topic = {"bootstrap.servers": cluster.bootstrap_servers}, f"numbers-{uuid.uuid4().hex[:8]}"
    publisher = WorkersPublisher(kafka, topic)
    with_redis = f"redis://127.0.0.1:{server.port}/0"
    news, numbers = WorkersNews(with_redis, topic), FollowedNumbers(kafka, topic, "g", with_redis)
    took: list[float] = []

    def publish(workers: int) -> float:
        publisher.publish(ScaledTopic(cluster_id, "g", "t"), WorkersRecord(workers=workers, at_ms=1))
        news.tell()
        return time.monotonic()

    def seen() -> int:
        return numbers()["t"].workers if "t" in numbers() else 0

    cluster_id = KafkaLag(kafka).cluster_id()
    publish(1)
    wait_until(lambda: seen() == 1, 30)
    for workers in range(2, 12):
        began = publish(workers)
        wait_until(functools.partial(_is, seen, workers), 10)
        took.append(time.monotonic() - began)
    print(f"a change arrived after {sorted(took)[5]:.3f} s in the median, {max(took):.3f} s at most")  # noqa: T201
    assert sorted(took)[5] < 1.0, took
    server.kill()
    publish(20)
    server.start()
    wait_until(lambda: seen() == 20, 30)  # a connection looks once: what was said before it is lost
    began = publish(21)
    wait_until(lambda: seen() == 21, 10)
    assert time.monotonic() - began < 5.0
    numbers.close()
    news.close()
    delete_topics(cluster.bootstrap_servers, [topic])


def _is(read: Callable[[], int], expected: int) -> bool:
    return read() == expected


def test_the_autoscaler_sees_jobs_that_follow_it(cluster: Cluster, tmp_path: Path) -> None:
    """Jobs have no consumer group, so they commit their positions to Kafka for it; every record is there once."""
    name = f"followed-{uuid.uuid4().hex[:6]}"
    topics, numbers = [f"{name}.{n}" for n in range(2)], f"numbers-{uuid.uuid4().hex[:8]}"
    make_topics(cluster.bootstrap_servers, topics, 4)
    send(cluster.bootstrap_servers, dict.fromkeys(topics, 1000))
    kafka = {"bootstrap.servers": cluster.bootstrap_servers}
    lag = KafkaLag(kafka)
    publisher = WorkersPublisher(kafka, numbers)
    record = WorkersRecord(workers=2, at_ms=1, max_poll_records=300, poll_timeout_ms=20_000)
    for topic in topics:
        publisher.publish(ScaledTopic(lag.cluster_id(), name, topic), record)
    jobs = Crontab(name, tmp_path, cluster)
    running = [jobs.start("--max-runtime", "150", "--workers-topic", numbers) for _ in range(2)]
    assert [one.wait(180) for one in running] == [0, 0], jobs.log()
    report = verify(jobs.table, name)
    assert (report.rows, report.duplicates, report.missing) == (2000, 0, 0), jobs.log()

    def committed() -> int:
        seen = lag.observe(name, lag.topics(topics, None))
        return sum(int(one.committed.clip(min=0).sum()) for one in seen.values())

    wait_until(lambda: committed() == 2000, 30)
    delete_topics(cluster.bootstrap_servers, [*topics, numbers])
