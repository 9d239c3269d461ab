"""The assignors inside a real broker, for confluent-kafka's consumers in the new protocol (KIP-848)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from assignors import Member, Topic, plan
from assignors.planner.topics_and_members import TopicPartition
from spark_sink.agent.start.java_command import cache_directory, find_java
from spark_sink.demo.cluster import Access, Cluster, find_assignor_jar
from spark_sink.demo.cluster.kafka_jars import KAFKA_VERSION, _ivy_jar, resolve_jars
from spark_sink.errors import ClusterError
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CONSUMER = Path(__file__).with_name("consumer_process.py")
SESSION_S = 6.0
GROUP = "ingest"
PATTERN = r"^flights\..*"
PARTITIONS = 3
Owners = dict[str, frozenset[TopicPartition]]


class Group:
    """Consumers of one group on a cluster, and what the broker says they own."""

    def __init__(self, cluster: Cluster, topics: int, workers: int | None) -> None:
        self.workers = workers
        self.servers = cluster.bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        names = [f"flights.{number:03}" for number in range(topics)]
        for made in self.admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
            made.result(60)
        self.ids: dict[str, str] = {}
        wait_until(lambda: self._described(names), what="the description of each new topic")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def _described(self, names: list[str]) -> bool:
        """Ask for the ids of the topics; an error of Kafka while a broker does not know one yet."""
        described = self.admin.describe_topics(TopicCollection(names))
        # librdkafka writes plain base64, Kafka's own tools and our assignors the URL-safe one.
        self.ids = {
            name: str(one.result(60).topic_id).translate(str.maketrans("+/", "-_")).rstrip("=")
            for name, one in described.items()
        }
        return True

    @property
    def all(self) -> frozenset[TopicPartition]:
        """Every partition, its topic named by its id."""
        return frozenset((topic, p) for topic in self.ids.values() for p in range(PARTITIONS))

    def start(self, instance: str) -> None:
        """Start a consumer with this instance id."""
        config = {
            "bootstrap.servers": self.servers,
            "group.id": GROUP,
            "group.protocol": "consumer",
            "group.remote.assignor": "azimuth-hrw",
            "group.instance.id": instance,
            "auto.offset.reset": "earliest",
        }
        self.processes[instance] = subprocess.Popen([sys.executable, str(CONSUMER), json.dumps(config), PATTERN])
        # A question for a group that is asked before this topic is there gets no answer, and its client never ends.
        wait_until(lambda: "__consumer_offsets" in self.admin.list_topics(timeout=5).topics)

    def start_console(self, instance: str, tools: Path, records: Path) -> None:
        """Start Kafka's console consumer with this instance id; it writes the values that it reads into a file."""
        java = find_java()
        properties = {
            "group.protocol": "consumer",
            "group.remote.assignor": "azimuth-hrw",
            "group.instance.id": instance,
            "auto.offset.reset": "earliest",
        }
        words = ["--bootstrap-server", self.servers, "--group", GROUP, "--include", PATTERN.removeprefix("^")]
        for name, value in properties.items():
            words += ["--command-property", f"{name}={value}"]
        path = os.pathsep.join([f"{resolve_jars(java)}/*", str(tools)])
        command = [java, "-Xmx128m", "-cp", path, "org.apache.kafka.tools.consumer.ConsoleConsumer", *words]
        with records.open("wb") as out:
            self.processes[instance] = subprocess.Popen(command, stdout=out)

    def write_to_each(self) -> None:
        """Write a record to each partition, with the partition's name as its value."""
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for name in self.ids:
            for number in range(PARTITIONS):
                producer.produce(name, f"{self.ids[name]} {number}".encode(), partition=number)
        assert producer.flush(60) == 0

    def end(self, instance: str, signal_number: int) -> None:
        """Send a signal and wait for the process' end."""
        process = self.processes.pop(instance)
        process.send_signal(signal_number)
        process.wait(30)

    def owners(self) -> Owners:
        """Partitions of each instance id, as the broker lists them."""
        described = self.admin.describe_consumer_groups([GROUP], request_timeout=5)[GROUP].result(15)
        return {
            str(member.group_instance_id): frozenset(
                (self.ids[one.topic], one.partition) for one in member.assignment.topic_partitions
            )
            for member in described.members
        }

    def settle(self, true: Callable[[Owners], bool], timeout_s: float = 60.0) -> Owners:
        """Wait until every partition has an owner and the condition holds."""
        seen: Owners = {}

        def settled() -> bool:
            nonlocal seen
            seen = self.owners()
            given = [partition for mine in seen.values() for partition in mine]
            return len(given) == len(self.all) and frozenset(given) == self.all and true(seen)

        wait_until(settled, timeout_s, "a whole assignment")
        return seen

    def planned(self, before: Owners, members: set[str]) -> Owners:
        """Return what Python's planner makes of the group; it moves what the bounds require and nothing else."""
        topics = [Topic(name, PARTITIONS) for name in self.ids.values()]
        wanted = frozenset(self.ids.values())
        group = [Member(id=m, topics=wanted, owned=before.get(m, frozenset())) for m in members]
        made = plan(topics, group, workers=self.workers)
        assert made.moved == made.lower_bound
        return {m: frozenset(mine) for m, mine in made.partitions.items()}

    def most_readers(self, owners: Owners) -> int:
        """Return how many members read the topic with the most of them."""
        readers = Counter(topic for mine in owners.values() for topic in {topic for topic, _ in mine})
        return max(readers.values())

    def close(self) -> None:
        """Kill what still runs, and let go of the client while its broker still answers."""
        for instance in list(self.processes):
            self.end(instance, signal.SIGKILL)
        del self.admin


@pytest.fixture
def start_group(tmp_path: Path) -> Iterator[Callable[..., Group]]:
    """Start a broker with the plug-in, and a group on it."""
    try:
        jar = find_assignor_jar()
    except ClusterError as error:
        pytest.skip(str(error))
    session = str(int(SESSION_S * 1000))
    settings = {"group.consumer.session.timeout.ms": session, "group.consumer.min.session.timeout.ms": session}
    started: list[tuple[Cluster, Group]] = []

    def start(topics: int, workers: int | None = None, **properties: str) -> Group:
        access = Access(broker={**settings, **properties})
        cluster = Cluster.up(tmp_path / "cluster", racks=["az-a"], tied=True, access=access, assignor_jar=jar)
        group = Group(cluster, topics, workers)
        started.append((cluster, group))
        return group

    yield start
    for cluster, group in started:
        group.close()
        cluster.down()


@pytest.mark.parametrize("workers", [None, 2], ids=["no caps", "two workers by pattern"])
def test_owners_are_those_that_the_python_planner_names(start_group: Callable[..., Group], workers: int | None) -> None:
    """Joins, a kill and a return: the same plan in two languages, and no partition moves without need."""
    caps = {"azimuth.workers.by.name": f"flights[.].*={workers} *=all"} if workers else {}
    group = start_group(224, workers, **caps)
    owners: Owners = {}
    names = [f"agent-{number}" for number in range(6)]
    for number, name in enumerate(names):
        expected = group.planned(owners, set(names[: number + 1]))
        group.start(name)
        owners = group.settle(lambda now, wanted=expected: now == wanted)  # type: ignore[misc] # the plan of this turn

    assert group.most_readers(owners) == (workers or PARTITIONS)

    # Orderly: a static member's partitions wait for it, so nothing moves and it gets exactly its own.
    group.end(names[2], signal.SIGTERM)
    group.start(names[2])
    assert group.settle(lambda now: now.keys() == set(names)) == owners

    # Killed: after the broker's session others take over, as planned; and some come back with the agent.
    expected = group.planned(owners, set(names) - {names[2]})
    group.end(names[2], signal.SIGKILL)
    killed = time.monotonic()
    survivors = group.settle(lambda now: now == expected)
    took = time.monotonic() - killed
    print(f"taken over {took:.1f} s after SIGKILL, with a session of {SESSION_S:.0f} s")  # noqa: T201 -- a figure of the run
    expected = group.planned(survivors, set(names))
    group.start(names[2])
    back = group.settle(lambda now: now == expected)
    assert all(back[name] <= survivors[name] for name in names if name != names[2]), "others took from each other"


@pytest.fixture(scope="module")
def tools_jar() -> Path:
    """Kafka's command-line tools, which brokers do not need: downloaded once, beside the broker's jars."""
    jar = cache_directory() / "tools" / f"kafka-tools-{KAFKA_VERSION}.jar"
    if not jar.exists():
        wanted = ["org.apache.kafka", "kafka-tools", KAFKA_VERSION]
        target = str(jar.parent / "[artifact]-[revision].[ext]")
        ivy = [find_java(), "-cp", str(_ivy_jar()), "org.apache.ivy.Main", "-dependency", *wanted, "-notransitive"]
        subprocess.run([*ivy, "-types", "jar", "-retrieve", target], capture_output=True, check=False)
    if not jar.exists():
        pytest.skip(f"{jar.name} could not be downloaded from Maven Central")
    return jar


def test_the_console_consumer_shares_a_group_with_consumers_of_confluent_kafka(
    start_group: Callable[..., Group], tools_jar: Path, tmp_path: Path
) -> None:
    """A member in Java and members on librdkafka: the Python planner's owners, and each reads what it owns."""
    group = start_group(24)
    owners: Owners = {}
    for name in ("agent-0", "agent-1"):
        expected = group.planned(owners, {*owners, name})
        group.start(name)
        owners = group.settle(lambda now, wanted=expected: now == wanted)  # type: ignore[misc] # the plan of this turn

    records = tmp_path / "records"
    expected = group.planned(owners, {*owners, "console"})
    group.start_console("console", tools_jar, records)
    owners = group.settle(lambda now: now == expected)
    group.write_to_each()
    mine = {f"{topic} {number}" for topic, number in owners["console"]}
    wait_until(lambda: set(records.read_text().splitlines()) == mine, 60, "the records of the console's partitions")

    # Killed: librdkafka's members take its partitions over, as planned.
    expected = group.planned(owners, {"agent-0", "agent-1"})
    group.end("console", signal.SIGKILL)
    group.settle(lambda now: now == expected)
