"""GroupConsumer in groups whose broker assigns (KIP-848): no record is left out, and classic groups move over."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from assignors import BrokerAssignedMember, GroupConsumer, MembershipError, NotOwnedError
from assignors.comparison import read_group
from assignors.errors import GroupError
from spark_sink.demo.cluster import Access, Cluster, find_assignor_jar
from spark_sink.errors import ClusterError
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.group_membership import KafkaMembership
from tests.integration.assignors.conftest import Topics
from tests.integration.assignors.flow import PARTITIONS, Flow, wait_until_all_read
from tests.integration.assignors.members import CONSUMER, Process, deliveries, overlaps, ownerless
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

PATIENCE_S = 90.0
SESSION_S = 6.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with the plug-in and short sessions."""
    try:
        jar = find_assignor_jar()
    except ClusterError as error:
        pytest.skip(str(error))
    broker = {
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.min.session.timeout.ms": str(int(SESSION_S * 1000)),
        "group.consumer.session.timeout.ms": str(int(SESSION_S * 1000)),
    }
    access = Access(broker=broker)
    folder = tmp_path_factory.mktemp("broker-assigned") / "cluster"
    cluster = Cluster.up(folder, racks=["az-a"], tied=True, access=access, assignor_jar=jar)
    yield cluster.bootstrap_servers
    cluster.down()


@pytest.fixture
def topics(servers: str) -> Iterator[Topics]:
    """A topic prefix and a group that only this test uses."""
    made = Topics(servers)
    yield made
    made.close()


@pytest.fixture
def flow(topics: Topics) -> Iterator[Flow]:
    """Records to six topics of four partitions."""
    made = Flow(topics, replication=1)
    yield made
    made.end()


class Members:
    """Consumers of a test as processes, ended with it."""

    def __init__(self, topics: Topics, folder: Path) -> None:
        self._topics = topics
        self._folder = folder
        self.all: list[Process] = []

    def start(self, name: str, *assignors: str, run: int = 0) -> Process:
        """Start a consumer: of the classic protocol with assignors, else the broker assigns."""
        topics = self._topics
        settings: dict[str, Any] = {
            "config": topics.consumer_config() if assignors else topics.broker_assigned_config(),
            "commit_s": 1.0,
            "pattern": f"^{topics.pattern}",
            "assignors": assignors,
            "agent": name,
            "most": 500,
        }
        self.all.append(Process(self._folder, settings, f"{name}-{run}", CONSUMER))
        return self.all[-1]

    def close(self) -> None:
        """End those that still run."""
        for one in self.all:
            if one.killed_at is None:
                one.stop()


@pytest.fixture
def members(topics: Topics, tmp_path: Path) -> Iterator[Members]:
    """Consumers of this test's group."""
    made = Members(topics, tmp_path)
    yield made
    made.close()


def shared_evenly(processes: list[Process], flow: Flow) -> bool:
    """Each partition has one owner, and all have as many: then none is still on its way to another owner."""
    held = [one.holds() for one in processes]
    owned = [partition for each in held for partition in each]
    everything = sorted((name, number) for name in flow.names for number in range(PARTITIONS))
    return len({len(each) for each in held}) == 1 and sorted(owned) == everything


def reading(processes: list[Process]) -> bool:
    """Each of them has partitions and has received records."""
    return all(one.owns() and deliveries([one]) for one in processes)


def test_killed_members_lose_no_record(flow: Flow, members: Members) -> None:
    """SIGKILL: after the broker's session the others have its partitions, and read on from its commits."""
    running = [members.start(f"agent-{n}") for n in range(3)]
    wait_until(lambda: reading(running), PATIENCE_S)
    running[0].kill()
    running[0] = members.start("agent-0", run=1)
    wait_until(lambda: reading(running), PATIENCE_S)
    flow.end()
    wait_until_all_read(flow, members.all, PATIENCE_S)
    assert overlaps(members.all) == []
    assert not any("Traceback" in one.errors() for one in members.all)


@pytest.mark.slow
def test_a_rolling_restart_takes_a_group_from_the_classic_protocol_to_the_brokers(flow: Flow, members: Members) -> None:
    """Members of both protocols share the group meanwhile: each record comes once, no partition has two readers.

    A partition has no owner only while a member leaves or joins: never before, after, or for longer. The first three
    members count as well: on a busy machine they start one after the other, and each takes partitions from the others.
    """
    began = time.monotonic()
    running = [members.start(f"agent-{n}", "hrw-cooperative") for n in range(3)]
    wait_until(lambda: reading(running) and shared_evenly(running, flow), PATIENCE_S)
    rebalances = [(began, time.monotonic())]
    for n in range(3):
        began = time.monotonic()
        running[n].stop()
        running[n] = members.start(f"agent-{n}", run=1)
        wait_until(lambda: reading(running) and shared_evenly(running, flow), PATIENCE_S)
        rebalances.append((began, time.monotonic()))
    gaps = ownerless(members.all)
    outside = [gap for gap in gaps if not any(began <= gap[2] <= gap[3] <= ended for began, ended in rebalances)]
    assert outside == []
    longest = max(ended - began for _, _, began, ended in gaps)
    took = ", ".join(f"{ended - began:.1f}" for began, ended in rebalances)
    print(f"{len(gaps)} times without an owner, up to {longest:.2f} s; the rebalances took {took} s")  # noqa: T201 -- figures of the run
    flow.end()
    wait_until_all_read(flow, members.all, PATIENCE_S)
    delivered = deliveries(members.all)
    assert {record: times for record, times in delivered.items() if times > 1} == {}
    assert delivered.keys() == flow.written
    assert overlaps(members.all) == []
    assert [one.errors() for one in members.all if "Traceback" in one.errors()] == []


def test_a_member_commits_its_own_partitions_only(topics: Topics) -> None:
    """Two members share a topic: each commits what it owns, and a commit for the other is an error."""
    topics.make("t", partitions=4)
    config = topics.broker_assigned_config()
    with BrokerAssignedMember(config, topics=[f"^{topics.pattern}"]) as one:
        wait_until(lambda: len(one.ownership().partitions) == 4, PATIENCE_S)
        with BrokerAssignedMember(config, topics=[f"^{topics.pattern}"]) as two:
            wait_until(lambda: len(one.ownership().partitions) == len(two.ownership().partitions) == 2, PATIENCE_S)
            mine, theirs = one.ownership().partitions, two.ownership().partitions
            assert not mine & theirs
            one.commit(dict.fromkeys(mine, 5))
            with pytest.raises(NotOwnedError, match="this member does not own"):
                one.commit({**dict.fromkeys(mine, 6), **dict.fromkeys(theirs, 7)})
            assert two.committed([*mine, *theirs]) == dict.fromkeys(mine, 5)
        wait_until(lambda: len(one.ownership().partitions) == 4, PATIENCE_S)
        assert one.ownership().joined
    with pytest.raises(MembershipError):
        one.commit(dict.fromkeys(mine, 8))


def test_an_assignor_that_the_broker_lacks_is_an_error_with_its_cure(topics: Topics) -> None:
    """The program hears of it in poll; close() still ends."""
    topics.make("t")
    config = topics.broker_assigned_config(**{"group.remote.assignor": "no-such"})
    with GroupConsumer(config) as consumer:
        consumer.subscribe([f"^{topics.pattern}"])

        def refused() -> bool:
            try:
                consumer.poll(0.2)
            except KafkaException as error:
                assert "group.consumer.assignors" in str(error)  # noqa: PT017 -- poll may need several calls
                return True
            return False

        wait_until(refused, PATIENCE_S)


def test_a_program_that_polls_no_more_loses_its_partitions_and_gets_them_back(topics: Topics) -> None:
    """max.poll.interval.ms: nothing is delivered before on_lost, and the next poll joins again."""
    [name] = topics.make("t", partitions=2)
    topics.fill([name], 3, partitions=2)
    events: list[str] = []

    def note(kind: str) -> Callable[[GroupConsumer, list[KafkaPartition]], None]:
        return lambda _, partitions: events.append(f"{kind} {len(partitions)}")

    config = topics.broker_assigned_config(**{"max.poll.interval.ms": 6000})
    with GroupConsumer(config) as consumer:
        consumer.subscribe([name], on_assign=note("assigned"), on_lost=note("lost"))
        wait_until(lambda: bool(consumer.consume(10, 0.2)), PATIENCE_S)
        wait_until(lambda: not consumer.ownership().partitions, PATIENCE_S)
        assert "lost 2" not in events
        wait_until(lambda: any(one.error() is None for one in consumer.consume(10, 0.2)), PATIENCE_S)
    assert events[:3] == ["assigned 2", "lost 2", "assigned 2"]


def test_the_reader_of_a_spark_query_joins_and_commits(topics: Topics) -> None:
    """The same options as for the classic protocol, and the protocol's own as kafka.* options."""
    [name] = topics.make("t", partitions=3)
    options = {
        "kafka.bootstrap.servers": topics.bootstrap_servers,
        "kafka.group.id": topics.group,
        "kafka.group.protocol": "consumer",
        "kafka.group.remote.assignor": "azimuth-hrw",
        "subscribePattern": topics.pattern,
        "agent": "agent-1",
    }
    membership = KafkaMembership(SourceOptions.parse(options))
    wanted = {TopicPartition(name, number) for number in range(3)}
    wait_until(lambda: membership.assignment(10).partitions == wanted, PATIENCE_S)
    assert membership.assignment(10).generation > 0
    assert membership.commit(dict.fromkeys(wanted, 7))
    membership.leave()
    assert topics.committed(wanted) == dict.fromkeys(wanted, 7)


@pytest.mark.slow
def test_plan_looks_at_a_group_whose_broker_assigns(topics: Topics) -> None:
    """kafka-python cannot describe it; the plan of azimuth-hrw is the planner's own."""
    topics.make("t", "u", partitions=4)
    config = topics.broker_assigned_config(**{"group.instance.id": "a"})
    with BrokerAssignedMember(config, topics=[f"^{topics.pattern}"]) as one:
        wait_until(lambda: len(one.ownership().partitions) == 8, PATIENCE_S)
        properties = {"bootstrap.servers": topics.bootstrap_servers}
        group = read_group(topics.bootstrap_servers, topics.group, properties=properties)
        assert (group.protocol, group.strategy) == ("consumer", "azimuth-hrw")
        assert [(member.instance, member.owned) for member in group.members] == [("a", one.ownership().partitions)]
        assert sorted(topic.partitions for topic in group.topics) == [4, 4]
        words = ["plan", "--bootstrap-servers", topics.bootstrap_servers, "--group", topics.group]
        done = subprocess.run([sys.executable, "-m", "spark_sink", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 member from 1 client address, 2 topics, 8 partitions" in done.stdout
    assert "the broker assigns (KIP-848)" in done.stdout
    with pytest.raises(GroupError, match="there is no group"):
        read_group(topics.bootstrap_servers, f"{topics.group}-none", properties=properties)
