"""`azimuth plan` on a live group: what it says is what the members have, and it changes nothing."""

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from assignors import HRWAssignor
from assignors.comparison import read_group
from spark_sink.cli import main
from spark_sink.demo.cluster import Cluster
from spark_sink.demo.topics import create_topics

pytestmark = pytest.mark.integration


@contextlib.contextmanager
def consumers(
    cluster: Cluster, group: str, assignors: list[object], topics: list[str]
) -> Iterator[list[KafkaConsumer]]:
    """Consumers that poll in threads of their own."""
    ended = threading.Event()
    made = [
        KafkaConsumer(
            *topics,
            bootstrap_servers=cluster.bootstrap_servers.split(","),
            group_id=group,
            partition_assignment_strategy=[assignor],
        )
        for assignor in assignors
    ]

    def poll(consumer: KafkaConsumer) -> None:
        while not ended.is_set():
            consumer.poll(100)
        consumer.close(autocommit=False)

    threads = [threading.Thread(target=poll, args=(consumer,)) for consumer in made]
    for thread in threads:
        thread.start()
    yield made
    ended.set()
    for thread in threads:
        thread.join()


def settled(made: list[KafkaConsumer], partitions: int) -> bool:
    """Whether all partitions are given."""
    deadline = time.monotonic() + 60
    while sum(len(one.assignment()) for one in made) != partitions:
        assert time.monotonic() < deadline, "the group did not settle"
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("kind", ["range", "hrw"])
def test_the_live_group_is_read_as_it_is(cluster: Cluster, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Members, racks, loads and owned partitions are the consumers' own, whichever assignor they use."""
    mark = uuid.uuid4().hex[:8]
    topics = [f"plan.{mark}.{i}" for i in range(6)]
    create_topics(cluster.bootstrap_servers, topics, partitions=1, replicas=1, config={})
    own = [HRWAssignor(agent=f"agent-{i}", rack=f"az-{'abc'[i]}") for i in range(3)]
    stock: list[object] = [RangePartitionAssignor] * 3
    with consumers(cluster, f"plan-{mark}", stock if kind == "range" else list(own), topics) as made:
        settled(made, 6)
        found = read_group(cluster.bootstrap_servers, f"plan-{mark}")
        main_ended(["plan", "--bootstrap-servers", cluster.bootstrap_servers, "--group", f"plan-{mark}", "--json"])
        owned = sorted(sorted((p.topic, p.partition) for p in one.assignment()) for one in made)
        again = read_group(cluster.bootstrap_servers, f"plan-{mark}")
    said = json.loads(capsys.readouterr().out)
    now, hrw = said["outcomes"][0], next(one for one in said["outcomes"] if one["strategy"] == "hrw")
    assert found.strategy == kind
    assert sorted(sorted(member.owned) for member in found.members) == owned
    assert again == found
    assert now["most"] == (6 if kind == "range" else 2)
    assert (hrw["most"], hrw["idle"]) == (2, 0)
    if kind == "hrw":
        assert {member.rack for member in found.members} == {"az-a", "az-b", "az-c"}
        assert {member.instance for member in found.members} == {"agent-0", "agent-1", "agent-2"}
        assert hrw["moved"] == 0


def main_ended(arguments: list[str]) -> int:
    """Run a command to its end."""
    try:
        main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_a_group_that_is_not_there_is_one_sentence(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, the group's name, and what to do."""
    code = main_ended(["plan", "--bootstrap-servers", cluster.bootstrap_servers, "--group", "nobody-at-all"])
    said = capsys.readouterr().err
    assert code == 2
    assert "'nobody-at-all'" in said
    assert "Traceback" not in said
