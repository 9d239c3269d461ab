"""The assignors as kafka-python uses them: wire format, hostile members, changes at run time."""

import json
import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.util import WeakMethod

from assignors import HRWAssignor, ShuffledRoundRobinAssignor
from assignors.planner.plan_result import Plan
from assignors.protocol import base_assignor, kafka_python_assignors
from assignors.protocol.join_subscription import encode_subscription
from tests.unit.assignors.groups import Cluster, Group, joined, read


@pytest.mark.parametrize(
    ("assignor", "name", "protocol"),
    [
        (HRWAssignor(), "hrw", RebalanceProtocol.EAGER),
        (HRWAssignor(workers=2, epsilon=0.1, seed=3, rack_by="leader"), "hrw", RebalanceProtocol.EAGER),
        (HRWAssignor(cooperative=True), "hrw-cooperative", RebalanceProtocol.COOPERATIVE),
        (ShuffledRoundRobinAssignor(), "shuffled", RebalanceProtocol.EAGER),
        (ShuffledRoundRobinAssignor(cooperative=True), "shuffled-cooperative", RebalanceProtocol.COOPERATIVE),
    ],
)
def test_each_protocol_has_its_name_and_sends_no_user_data(assignor: Any, name: str, protocol: object) -> None:
    """Names differ because kafka-python mixes no protocols; user data would block the online upgrade (KIP-848)."""
    assert (assignor.name, assignor.supported_protocols()) == (name, [protocol])
    said = ConsumerProtocolSubscription.decode(assignor.metadata({"b", "a"}).encode())
    assert said.version == 3
    assert (said.topics, said.user_data, said.generation_id, said.rack_id) == (["a", "b"], None, -1, None)


def test_claims_generation_and_rack_are_sent() -> None:
    """Assigned partitions are claimed at the next join, with their generation, without unsubscribed topics."""
    assignor = HRWAssignor(rack="az-a")
    assignor.on_assignment(ConsumerProtocolAssignment(0, [("a", [1, 0]), ("gone", [0])], b""), 7)
    said = ConsumerProtocolSubscription.decode(assignor.metadata({"a"}).encode())
    assert [(c.topic, c.partitions) for c in said.owned_partitions] == [("a", [0, 1])]
    assert (said.generation_id, said.rack_id) == (7, "az-a")


def test_kafka_python_accepts_instances() -> None:
    """A consumer's coordinator takes the instances and agrees on their protocol."""
    for cooperative in (False, True):
        made = [HRWAssignor(cooperative=cooperative), ShuffledRoundRobinAssignor(cooperative=cooperative)]
        coordinator: Any = object.__new__(ConsumerCoordinator)
        coordinator._assignors = {a.name: a for a in made}
        assert coordinator._validate_rebalance_protocol() == RebalanceProtocol(int(cooperative))


def test_an_agent_gets_its_topics_back_after_a_restart() -> None:
    """agent= outlives the member id: all restart with nothing owned, and hold the same again."""
    cluster, topics = Cluster(dict.fromkeys("abcdefgh", 1)), set("abcdefgh")
    first = Group(lambda name: HRWAssignor(agent=name[:7]), cluster, topics)
    first.join("agent-0-x", "agent-1-x", "agent-2-x")
    second = Group(lambda name: HRWAssignor(agent=name[:7]), cluster, topics)
    second.join("agent-2-y", "agent-0-y", "agent-1-y")
    before, after = first.rebalance(), second.rebalance()
    assert {m[:7]: mine for m, mine in before.items()} == {m[:7]: mine for m, mine in after.items()}


def test_cooperative_rounds_never_give_what_another_still_reads() -> None:
    """KIP-429: a partition that moves has no owner for one round, then its new owner, and then nothing moves."""
    group = Group(lambda name: HRWAssignor(agent=name, cooperative=True), Cluster({"t": 12}), {"t"})
    group.join("m0", "m1")
    group.rebalance()
    before = dict(group.holds)
    group.join("m2")
    between = dict(group.rebalance())
    assert all(between[m] <= before[m] for m in before)
    assert between["m2"] == set()
    after = dict(group.rebalance())
    assert all(between[m] <= after[m] for m in between)
    assert sorted(len(mine) for mine in after.values()) == [4, 4, 4]
    assert group.rebalance() == after


def test_leader_asks_for_the_second_round_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that lost its partitions still claims them and revokes none, so only the leader can ask again."""
    monkeypatch.setattr(base_assignor, "_FOLLOW_UP_S", 0.01)
    leader = HRWAssignor(agent="m0", cooperative=True, epsilon=0)
    coordinator, cluster = coordinated(leader, Cluster({"t": 2}))
    lost = HRWAssignor(agent="m1", cooperative=True, epsilon=0)
    lost.on_assignment(ConsumerProtocolAssignment(0, [("t", [0, 1])], b""), 3)
    answer = leader.assign(cluster, [joined(leader, "m0", {"t"}), joined(lost, "m1", {"t"})])
    assert not coordinator.asked.is_set()
    leader.on_assignment(ConsumerProtocolAssignment.decode(answer["m0"].encode()), 4)
    assert coordinator.asked.wait(10)


class Coordinator:
    """The part of kafka-python's coordinator that an assignor asks."""

    def __init__(self, assignor: object) -> None:
        """Hold the assignor as the coordinator does."""
        self._assignors = {"hrw": assignor}
        self._heartbeat_closed = False
        self.asked = threading.Event()

    def request_rejoin(self) -> None:
        """As kafka-python."""
        self.asked.set()

    def on_metadata(self, _cluster: object) -> None:
        """Listen."""


def coordinated(assignor: object, cluster: Cluster) -> tuple[Coordinator, Cluster]:
    """Connect a coordinator to the cluster as kafka-python does: by a weak listener."""
    coordinator = Coordinator(assignor)
    cluster._listeners.add(WeakMethod(coordinator.on_metadata))
    return coordinator, cluster


def test_changed_workers_file_asks_for_a_rebalance(tmp_path: Path) -> None:
    """The leader looks at the file, asks, and plans with the new number; a broken file changes nothing.

    It asks until the group has a new plan: kafka-python drops a request that arrives within a rebalance.
    """
    path = tmp_path / "workers.json"
    path.write_text("1")
    assignor = HRWAssignor(workers=path, epsilon=0, agent="m0", watch_interval_s=0.01)
    coordinator, cluster = coordinated(assignor, Cluster({"t": 4}))
    people = [joined(assignor, "m0", {"t"}), joined(HRWAssignor(agent="m1"), "m1", {"t"})]
    assert sorted(len(mine) for mine in read(assignor.assign(cluster, people)).values()) == [0, 4]
    path.write_text("{")
    assert not coordinator.asked.wait(0.1)
    path.write_text(json.dumps({"t": 2}))
    assert coordinator.asked.wait(5)
    coordinator.asked.clear()
    assert coordinator.asked.wait(5)
    assert sorted(len(mine) for mine in read(assignor.assign(cluster, people)).values()) == [2, 2]
    assignor.stop_watch()


def test_workers_that_change_while_the_group_is_planned_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planned value is the one before the plan, even if another thread reads the source during the plan."""
    values = {"now": 1}
    assignor = HRWAssignor(workers=lambda: values["now"], agent="m0", watch_interval_s=0.01)
    coordinator, cluster = coordinated(assignor, Cluster({"t": 4}))
    plan = assignor._kafka_azimuth_plan

    def changed(*arguments: Any) -> Plan:
        made = plan(*arguments)
        values["now"] = 2
        vars(assignor)["_HRWAssignor__workers"].refresh()
        return made

    monkeypatch.setattr(assignor, "_kafka_azimuth_plan", changed)
    assignor.assign(cluster, [joined(assignor, "m0", {"t"})])
    assert coordinator.asked.wait(5)
    assignor.stop_watch()


def test_a_member_that_leads_no_more_stops_looking() -> None:
    """Only the leader's workers count: a former leader must not ask for rebalances."""
    calls = iter([1, 1, *range(2, 99)])
    assignor = HRWAssignor(workers=lambda: next(calls), agent="m0", watch_interval_s=60)
    _, cluster = coordinated(assignor, Cluster({"t": 1}))
    answer = assignor.assign(cluster, [joined(assignor, "m0", {"t"})])["m0"]
    assignor.on_assignment(answer, 1)
    assert vars(assignor)["_HRWAssignor__leading"].watch is not None
    assignor.on_assignment(answer, 2)
    assert vars(assignor)["_HRWAssignor__leading"].watch is None


def test_racks_come_from_the_cluster() -> None:
    """Each member reads from its own zone where loads allow."""
    cluster = Cluster({"t": 6}, {0: "a", 1: "b", 2: "c"})
    people = [joined(HRWAssignor(rack=r, agent=r), r, {"t"}) for r in "abc"]
    leader = HRWAssignor()
    assert read(leader.assign(cluster, people)) == {r: {("t", i), ("t", i + 3)} for i, r in enumerate("abc")}
    assert leader.last_plan is not None
    assert leader.last_plan.off_rack == 0


hostile = st.builds(
    lambda version, topics, data, owned, generation, rack: ConsumerProtocolSubscription(
        version=version,
        topics=topics,
        user_data=data,
        owned_partitions=[ConsumerProtocolSubscription.TopicPartition(topic=t, partitions=p) for t, p in owned.items()],
        generation_id=generation,
        rack_id=rack,
    ),
    st.integers(0, 3),
    st.lists(st.sampled_from(["t", "u", "gone"]), max_size=4),
    st.sampled_from(
        [None, b"", b"\x00\x01garbage", b"{}", b'{"azimuth": 1}', b'{"azimuth":1,"agent":7,"weight":-1,"plan":""}']
    )
    | st.binary(max_size=40),
    st.dictionaries(st.sampled_from(["t", "u", "gone"]), st.lists(st.integers(-3, 9), max_size=9), max_size=3),
    st.integers(-5, 9),
    st.sampled_from([None, "", "a", "b", "nowhere"]),
)


@given(st.lists(st.tuples(hostile, st.sampled_from([None, "i-1", "i-2"])), min_size=1, max_size=6), st.booleans())
@settings(max_examples=150, deadline=None)
def test_no_member_can_stop_the_leader(
    said: list[tuple[ConsumerProtocolSubscription, str | None]],
    shuffled: bool,  # noqa: FBT001 - drawn by position
) -> None:
    """Whatever members send, every partition with a subscriber is given once, to a subscriber."""
    cluster = Cluster({"t": 5, "u": 3}, {0: "a", 1: "b"})
    people = [
        SimpleNamespace(
            member_id=f"m{i}", group_instance_id=instance, metadata=ConsumerProtocolSubscription.decode(s.encode())
        )
        for i, (s, instance) in enumerate(said)
    ]
    leader = ShuffledRoundRobinAssignor() if shuffled else HRWAssignor()
    answer = read(leader.assign(cluster, people))
    assert leader.last_plan is not None
    given = sorted(pair for mine in answer.values() for pair in mine)
    wanted = {t for p in people for t in p.metadata.topics}
    assert given == sorted((t, p) for t, n in (("t", 5), ("u", 3)) if t in wanted for p in range(n))
    assert all({t for t, _ in answer[p.member_id]} <= set(p.metadata.topics) for p in people)


@pytest.mark.parametrize("cooperative", [False, True])
def test_a_planner_that_fails_gives_evenly_instead(
    *, cooperative: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error of ours must not stop a group: the spare plan, and one line in the log."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    assignor = HRWAssignor(agent="m0", cooperative=cooperative)
    people = [joined(HRWAssignor(agent=m), m, {"t"}) for m in ("m0", "m1")]
    monkeypatch.setattr(kafka_python_assignors, "plan", fail)
    answer = read(assignor.assign(Cluster({"t": 4, "u": 1}), people))
    assert sorted(len(mine) for mine in answer.values()) == [2, 2]
    assert [r.levelno for r in caplog.records] == [logging.ERROR]


def test_each_mistake_of_a_group_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Foreign user data, other configurations and members without identity: a safe plan and one warning each."""
    leader, cluster = HRWAssignor(agent="m0"), Cluster({"t": 4})
    foreign = SimpleNamespace(
        member_id="m1", group_instance_id="i", metadata=encode_subscription(["t"], [], -1, None, b"\x00\x01\x02")
    )
    other = joined(HRWAssignor(agent="m2", workers=1), "m2", {"t"})
    nameless = joined(HRWAssignor(), "m3", {"t"})
    for _ in range(3):
        answer = read(leader.assign(cluster, [joined(leader, "m0", {"t"}), foreign, other, nameless]))
        assert sorted(len(mine) for mine in answer.values()) == [1, 1, 1, 1]
    assert len(caplog.messages) == 3
    assert all(
        any(word in m for m in caplog.messages) for word in ("another assignor", "workers=1", "group_instance_id")
    )


def test_fields_and_metadata_that_make_no_sense_lose_no_partition(caplog: pytest.LogCaptureFixture) -> None:
    """An error on the leader stops its group, so it plans with the readable data, and logs the rest once."""

    class Torn(Cluster):
        """Metadata that changes while it is read."""

        def brokers(self) -> list[SimpleNamespace]:
            raise RuntimeError("dictionary changed size during iteration")

    lead = HRWAssignor(agent="a")
    claim = SimpleNamespace(topic="t", partitions=None)
    strange = SimpleNamespace(topics=["t"], user_data=None, owned_partitions=[claim], generation_id=1, rack_id=None)
    members = [joined(lead, "1", {"t"}), SimpleNamespace(member_id="2", group_instance_id=None, metadata=strange)]
    for _ in range(2):
        given = read(lead.assign(Torn({"t": 4}), members))
        assert {m: len(mine) for m, mine in given.items()} == {"1": 2, "2": 2}
    assert len([m for m in caplog.messages if "'2' sent invalid fields" in m]) == 1
    assert len([m for m in caplog.messages if "planning without" in m]) == 1


def test_members_that_want_nothing_or_share_an_identity_lose_no_partition() -> None:
    """An empty subscription, and one static id twice: subscribers get all partitions, and both twins get some."""
    lead, cluster = HRWAssignor(agent="a"), Cluster({"t": 4})
    given = read(lead.assign(cluster, [joined(lead, "1", set()), joined(lead, "2", {"t"})]))
    assert {m: len(mine) for m, mine in given.items()} == {"1": 0, "2": 4}
    twins = [joined(HRWAssignor(), str(i), {"t"}, "same") for i in range(2)]
    assert {m: len(mine) for m, mine in read(lead.assign(cluster, twins)).items()} == {"0": 2, "1": 2}
    assert read(lead.assign(cluster, [joined(lead, "1", set())])) == {"1": set()}
    assert read(lead.assign(Cluster({}), [joined(lead, "1", {"t"})])) == {"1": set()}


def test_a_topic_deleted_while_the_leader_reads_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    """The metadata changes in another thread: deleted topics are left out, all others are assigned."""

    class Going(Cluster):
        """Metadata that loses a topic between two looks, and cannot be asked for another at all."""

        def partitions_for_topic(self, topic: str) -> set[int] | None:
            if topic == "broken":
                raise RuntimeError("dictionary changed size during iteration")
            found = super().partitions_for_topic(topic)
            if topic == "a-gone":
                self._partitions.pop(topic, None)
            return found

    lead = HRWAssignor(agent="a", rack="az-a")
    wanted = {"t", "a-gone", "broken"}
    given = read(lead.assign(Going({"t": 4, "a-gone": 2}, {0: "az-a"}), [joined(lead, "1", wanted)]))
    assert {t for t, _ in given["1"]} == {"t"}
    assert [m for m in caplog.messages if "'broken'" in m]


def test_topics_that_are_no_names_are_left_out() -> None:
    """No client of the protocol can send them; one inside the process can."""
    lead = HRWAssignor(agent="a")
    strange = SimpleNamespace(member_id="2", group_instance_id="b", metadata=SimpleNamespace(topics=[None, 5, "t"]))
    given = read(lead.assign(Cluster({"t": 4}), [joined(lead, "1", {"t"}), strange]))
    assert {m: len(mine) for m, mine in given.items()} == {"1": 2, "2": 2}
