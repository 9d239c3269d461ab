"""`azimuth autoscale` as people run it, on real brokers."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stub has no __all__

from assignors.scaling.kafka_lag import KafkaLag
from spark_sink.demo.cluster import Cluster
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def name(cluster: Cluster) -> Iterator[str]:
    """A prefix for this test's topics, which are removed at the end."""
    prefix = f"autoscale.{uuid.uuid4().hex[:8]}"
    yield prefix
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    made = [topic for topic in admin.list_topics(timeout=10).topics if topic.startswith(prefix)]
    for removed in admin.delete_topics(made).values() if made else ():
        removed.result(30)


def make(cluster: Cluster, topics: list[str], **config: str) -> None:
    """Make topics with two records in each of two partitions."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for made in admin.create_topics([NewTopic(topic, 2, 1, config=config) for topic in topics]).values():
        made.result(30)
    wait_until(lambda: set(topics) <= admin.list_topics(timeout=10).topics.keys())
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for topic in topics:
        for number in range(4):
            producer.produce(topic, b"v", b"k", partition=number % 2)
    assert producer.flush(30) == 0


def autoscale(
    cluster: Cluster, folder: Path, name: str, *flags: str, least: int = 1
) -> subprocess.CompletedProcess[str]:
    """Decide once on all topics of the prefix."""
    config = folder / "scaling.toml"
    config.write_text(f"""
bootstrap_servers = "{cluster.bootstrap_servers}"
journal = "{folder}/scaling.jsonl"
workers_topic = "{name}.workers"
[pipelines.all]
group = "{name}"
pattern = '{name}[.]t.*'
worker_rate = 1000
min_workers = {least}
""")
    command = [sys.executable, "-m", "spark_sink", "autoscale", "--config", str(config), "--once", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_a_dry_run_writes_nothing_to_the_cluster(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """No topic, no group, no offset, no number: it says what it would do, from the numbers in force."""
    topics = [f"{name}.t{n}" for n in range(5)]
    make(cluster, topics)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": name, "log_level": 0})

    def commit() -> bool:
        consumer.commit(offsets=[TopicPartition(topics[0], n, 2) for n in range(2)], asynchronous=False)
        return True

    wait_until(commit)  # the coordinator of a new group may be loading
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def state() -> tuple[set[str], set[str], list[int]]:
        groups = {one.group_id for one in admin.list_consumer_groups().result(30).valid or ()}
        offsets = [one.offset for one in consumer.committed([TopicPartition(t, 0) for t in topics], 30)]
        named = {topic for topic in admin.list_topics(timeout=10).topics if topic.startswith(name)}
        return named, {one for one in groups if one.startswith((name, "azimuth.workers"))}, offsets

    before = state()
    dry = autoscale(cluster, tmp_path, name)
    assert dry.returncode == 0, dry.stderr
    assert "workers kept, as the group has never committed: 4 of 5 topics" in dry.stdout
    assert f"{topics[0]}: 1 worker kept: " in dry.stdout
    assert state() == before
    applied = autoscale(cluster, tmp_path, name, "--apply")
    assert applied.returncode == 0, applied.stderr
    after = state()
    assert after[0] - before[0] == {f"{name}.workers"}
    assert after[1] - before[1] <= {f"{name}.workers.evaluator.{name}"}, "which elects the one that publishes"
    assert after[2] == before[2]
    more = autoscale(cluster, tmp_path, name, least=2)  # from the numbers in force
    assert f"dry run: {topics[0]}: 1 -> 2 workers" in more.stdout
    assert state() == after
    assert f"{topics[0]}: 1 worker kept: " in autoscale(cluster, tmp_path, name).stdout
    consumer.close()


def test_retention_without_an_end_and_compaction_set_no_deadline(cluster: Cluster, name: str) -> None:
    """Only a topic whose records are deleted by time has one."""
    makes = {
        "forever": {"retention.ms": "-1"},
        "compacted": {"cleanup.policy": "compact"},
        "both": {"cleanup.policy": "compact,delete", "retention.ms": "3600000"},
        "day": {"retention.ms": "86400000"},
    }
    for kind, config in makes.items():
        make(cluster, [f"{name}.t.{kind}"], **config)
    facts = KafkaLag({"bootstrap.servers": cluster.bootstrap_servers}).topics((), f"{name}[.]t.*")
    found = {topic.rsplit(".", 1)[1]: one.retention_s for topic, one in facts.items()}
    assert found == {"forever": None, "compacted": None, "both": 3600.0, "day": 86_400.0}


@pytest.mark.slow
def test_a_topic_that_is_deleted_meanwhile_is_left_out(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """Its number is taken back, the other topics are decided on as before."""
    make(cluster, [f"{name}.t0", f"{name}.t1"])
    source = KafkaLag({"bootstrap.servers": cluster.bootstrap_servers})
    facts = source.topics((), f"{name}[.]t.*")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    admin.delete_topics([f"{name}.t0"])[f"{name}.t0"].result(30)
    wait_until(lambda: f"{name}.t0" not in admin.list_topics(timeout=10).topics)
    seen = source.observe(name, facts)  # known a moment ago, gone now: unknown, and no error
    assert (seen[f"{name}.t0"].end < 0).all()
    assert (seen[f"{name}.t1"].end == 2).all()
    done = autoscale(cluster, tmp_path, name)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "scaling.jsonl").read_text().splitlines()]
    assert [line["topic"] for line in lines] == [f"{name}.t1"]


def test_deciding_once_on_nothing_is_an_error(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """A scheduler that runs the command sees it by the exit code."""
    done = autoscale(cluster, tmp_path, name)
    assert done.returncode == 2
    assert "no topic was decided on" in done.stderr
    assert "Traceback" not in done.stderr


def test_brokers_that_are_away_are_one_sentence(tmp_path: Path) -> None:
    """Exit code 2; no traceback."""
    config = tmp_path / "scaling.toml"
    config.write_text('bootstrap_servers = "127.0.0.1:1"\n[pipelines.all]\ngroup = "g"\ntopics = ["t"]\n')
    command = [sys.executable, "-m", "spark_sink", "autoscale", "--config", str(config), "--once"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "no broker answers at 127.0.0.1:1" in done.stderr
