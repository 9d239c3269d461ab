"""Java's consumer with our assignor of the classic protocol, in one group with a member in Python."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assignors import Member, Topic, plan
from spark_sink.agent.start.java_command import find_java
from spark_sink.demo.cluster import Cluster, find_assignor_jar
from spark_sink.demo.cluster.kafka_jars import resolve_jars
from spark_sink.errors import ClusterError
from tests.integration.assignors.conftest import Topics
from tests.integration.assignors.members import CONSUMER, Process
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

JAVA_MEMBER = Path(__file__).with_name("JavaMember.java")
PATIENCE_S = 90.0
PARTITIONS = 3
Owners = dict[str, frozenset[tuple[str, int]]]


class JavaProcess(Process):
    """A Java consumer as a process, with what it wrote."""

    def __init__(self, folder: Path, config: dict[str, str], pattern: str, name: str) -> None:
        java = find_java()
        jars = [f"{resolve_jars(java)}/*", str(find_assignor_jar())]
        self.name = name
        self.path = folder / f"{name}.jsonl"
        self.killed_at = None
        self._errors = folder / f"{name}.err"
        properties = [f"{key}={value}" for key, value in config.items()]
        command = [java, "-Xmx128m", "-cp", os.pathsep.join(jars), str(JAVA_MEMBER), pattern, *properties]
        with self.path.open("a") as out, self._errors.open("a") as errors:
            self._process = subprocess.Popen(command, stdout=out, stderr=errors)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that lets a group of one wait no time for others."""
    if shutil.which("javac") is None:
        pytest.skip("a JDK is needed to run a Java program from its source")
    try:
        find_assignor_jar()
    except ClusterError as error:
        pytest.skip(str(error))
    cluster = Cluster.up(tmp_path_factory.mktemp("java") / "cluster", racks=["az-a"], tied=True)
    yield cluster.bootstrap_servers
    cluster.down()


class MixedGroup:
    """Members in both languages, each by its name."""

    def __init__(self, topics: Topics, folder: Path) -> None:
        self._topics = topics
        self._folder = folder
        self.names = topics.make(*[f"t{number:02}" for number in range(24)], partitions=PARTITIONS)
        self.running: dict[str, Process] = {}

    def start(self, name: str, *, java: bool) -> None:
        """Start a member with `agent` as its identity."""
        if java:
            config = {
                "bootstrap.servers": self._topics.bootstrap_servers,
                "group.id": self._topics.group,
                "partition.assignment.strategy": "azimuth.clients.HrwCooperativeAssignor",
                "azimuth.agent": name,
                "metadata.max.age.ms": "1000",
            }
            self.running[name] = JavaProcess(self._folder, config, self._topics.pattern, name)
            return
        settings: dict[str, Any] = {
            "config": self._topics.consumer_config(),
            "commit_s": 1.0,
            "pattern": f"^{self._topics.pattern}",
            "assignors": ["hrw-cooperative"],
            "agent": name,
            "most": 500,
        }
        self.running[name] = Process(self._folder, settings, name, CONSUMER)

    def stop(self, name: str) -> None:
        """Let a member leave."""
        self.running.pop(name).stop()

    def owners(self) -> Owners:
        """Return what each member says that it owns."""
        return {name: frozenset(one.owns()) for name, one in self.running.items()}

    def settle(self, expected: Owners) -> Owners:
        """Wait until each member owns what is expected."""
        wait_until(lambda: self.owners() == expected, PATIENCE_S, "the planned owners")
        return expected

    def planned(self, before: Owners, members: set[str]) -> Owners:
        """Return what Python's planner makes of the group."""
        wanted = frozenset(self.names)
        group = [Member(id=m, topics=wanted, owned=before.get(m, frozenset())) for m in members]
        made = plan([Topic(name, PARTITIONS) for name in self.names], group)
        return {member: frozenset(mine) for member, mine in made.partitions.items()}


@pytest.fixture
def start_group(servers: str, tmp_path: Path) -> Iterator[Callable[[], MixedGroup]]:
    """Start a group, and end what still runs."""
    topics = Topics(servers)
    started: list[MixedGroup] = []

    def start() -> MixedGroup:
        started.append(MixedGroup(topics, tmp_path))
        return started[-1]

    yield start
    for group in started:
        for name in list(group.running):
            group.stop(name)
    topics.close()


def test_members_in_java_and_python_share_a_group_whoever_leads_it(start_group: Callable[[], MixedGroup]) -> None:
    """A leader in either language makes the same plan, reads the other's user data, and moves only what it must."""
    group = start_group()
    group.start("java", java=True)  # leads
    owners = group.settle(group.planned({}, {"java"}))
    expected = group.planned(owners, {"java", "python"})
    group.start("python", java=False)
    owners = group.settle(expected)

    expected = group.planned({"python": owners["python"]}, {"python"})
    group.stop("java")  # and Python leads
    owners = group.settle(expected)
    expected = group.planned(owners, {"java-2", "python"})
    group.start("java-2", java=True)
    owners = group.settle(expected)

    expected = group.planned(owners, {"java-2", "java-3", "python"})
    group.start("java-3", java=True)
    group.settle(expected)
