"""The corrections of a join, tested with a coordinator other than kafka-python's."""

import asyncio
import contextlib
import time
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.cluster import ClusterMetadata
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener, SubscriptionState
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.heartbeat import Heartbeat
from kafka.errors import IllegalGenerationError, KafkaError, MemberIdRequiredError, UnknownMemberIdError
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from kafka.protocol.metadata import MetadataResponse
from kafka.util import ensure_valid_topic_name

from assignors import HRWAssignor
from assignors.member import kafka_python_corrections as subject
from assignors.protocol.join_subscription import encode_subscription


class Coordinator:
    """A coordinator that records its calls."""

    def __init__(self, *, lost: bool, owned: set[str]) -> None:
        self.done: list[str] = []
        self.needed = False
        self._generation = SimpleNamespace(is_lost=lambda: lost, generation_id=-1, member_id="")
        self._subscription = SimpleNamespace(assigned_partitions=lambda: owned)

    def request_rejoin(self) -> None:
        """As kafka-python."""
        self.needed = True

    async def _on_join_prepare_async(self, generation: int, member_id: str) -> None:
        assert (generation, member_id) == (-1, "")
        self.done.append("lost")

    async def _do_join_and_sync_async(self) -> bytes:
        assert self.needed
        self.done.append("joined")
        return b"yours"


@pytest.mark.parametrize(
    ("lost", "owned", "done"),
    [
        pytest.param(True, {"a"}, ["lost", "joined"], id="put out of the group"),
        pytest.param(True, set(), ["joined"], id="with nothing to lose"),
        pytest.param(False, {"a"}, ["joined"], id="still a member"),
    ],
)
def test_who_was_put_out_of_the_group_says_so_before_it_joins(lost: bool, owned: set[str], done: list[str]) -> None:  # noqa: FBT001 - parameters
    """Each attempt, also the second one within a rebalance; kafka-python looks only before the first.

    And each is needed until it is over, whatever it was asked for.
    """
    coordinator: Any = Coordinator(lost=lost, owned=owned)
    subject.see_joins_through(coordinator)
    assert asyncio.run(coordinator._do_join_and_sync_async()) == b"yours"
    assert coordinator.done == done


def test_joins_that_are_refused_again_and_again_pause() -> None:
    """A broker would be asked as fast as it answers. After a success the count begins at 0."""
    slept: list[float] = []
    answers: list[KafkaError | bytes] = [MemberIdRequiredError(), *[UnknownMemberIdError()] * 6, b"yours"]
    answers += [IllegalGenerationError()] * 5

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def attempt() -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    coordinator: Any = SimpleNamespace(_do_join_and_sync_async=attempt, _net=SimpleNamespace(sleep=sleep))
    subject.pause_between_refused_joins(coordinator)
    pauses = []
    while answers:
        with contextlib.suppress(KafkaError):
            asyncio.run(coordinator._do_join_and_sync_async())
        pauses.append(len(slept))
    assert pauses == [0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3]


class Leader:
    """A coordinator that plans as kafka-python does: it parses the subscriptions of members itself."""

    def __init__(self) -> None:
        self.asked = 0
        self._topics: set[str] = set()
        self._subscription = SimpleNamespace(reset_group_subscription=self._topics.clear)

    def _perform_assignment(self, leader: str, protocol: str, members: list[Any]) -> dict[str, list[str]]:
        assert (leader, protocol) == ("m0", "hrw")
        self.asked += 1
        for one in members:
            one.metadata = ConsumerProtocolSubscription.decode(one.metadata)
            self._topics.update(one.metadata.topics)
        for topic in self._topics:
            ensure_valid_topic_name(topic)
        return {one.member_id: list(one.metadata.topics) for one in members}


def members(*sent: bytes) -> list[Any]:
    """As the broker lists them."""
    return [SimpleNamespace(member_id=f"m{n}", metadata=one) for n, one in enumerate(sent)]


FINE = HRWAssignor(agent="a").metadata({"t"}).encode()


@pytest.mark.parametrize("broken", [b"", b"\x00", FINE[:9], b"\x00\x01\x7f\xff\xff\xff", b"\xff" * 30])
def test_a_subscription_that_cannot_be_read_gets_nothing_and_ends_nobody(
    broken: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """With another client's invalid bytes, the leader plans for the other members, and logs the sender."""
    leader: Any = Leader()
    subject.lead_any_member(leader)
    assert leader._perform_assignment("m0", "hrw", members(FINE, broken, FINE)) == {"m0": ["t"], "m1": [], "m2": ["t"]}
    assert "'m1' (and 0 more) cannot be read" in caplog.text


def test_topics_whose_names_are_none_are_left_out() -> None:
    """A broker cannot be asked for them; the member gets its other topics."""
    leader: Any = Leader()
    subject.lead_any_member(leader)
    odd = encode_subscription(["t", "", "no name!", "n" * 300], [("t", 1)], 3, "a", b"x").encode()
    one, two = members(FINE, odd)
    assert leader._perform_assignment("m0", "hrw", [one, two]) == {"m0": ["t"], "m1": ["t"]}
    assert (two.metadata.generation_id, two.metadata.rack_id, bytes(two.metadata.user_data)) == (3, "a", b"x")
    assert [(list(c.partitions), c.topic) for c in two.metadata.owned_partitions] == [([1], "t")]


def test_a_plan_that_fails_for_another_reason_fails() -> None:
    """It is not tried twice, and not hidden."""
    leader: Any = Leader()
    subject.lead_any_member(leader)
    with pytest.raises(AssertionError):
        leader._perform_assignment("m0", "range", members(FINE))
    assert leader._perform_assignment("m0", "hrw", members(FINE)) == {"m0": ["t"]}
    assert leader.asked == 1


@pytest.mark.parametrize("enabled", [False, True])
def test_a_lookup_of_the_coordinator_does_not_delay_a_heartbeat(
    monkeypatch: pytest.MonkeyPatch, *, enabled: bool
) -> None:
    """Each refused commit causes one. The session begins again with it, as kafka-python has it; so does a join."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    heartbeat = Heartbeat(group_id="g", heartbeat_interval_ms=3000, session_timeout_ms=9000)
    heartbeat.reset_timeouts()

    def find(_: object) -> int:
        heartbeat.reset_timeouts()
        return 7

    coordinator: Any = SimpleNamespace(
        heartbeat=heartbeat, _heartbeat_enabled=enabled, _handle_find_coordinator_response=find
    )
    subject.heartbeat_when_due(coordinator)
    for at in range(1, 10):
        now = 100.0 + at
        assert coordinator._handle_find_coordinator_response(None) == 7
        assert not heartbeat.session_timeout_expired()
        assert heartbeat.should_heartbeat() is (enabled and at >= 3)


TOPIC = MetadataResponse.MetadataResponseTopic


def metadata(error: int) -> MetadataResponse:
    """A response for one topic of three partitions, or with an error instead of them."""
    partition = TOPIC.MetadataResponsePartition
    parts = [
        partition(
            error_code=0,
            partition_index=n,
            leader_id=1,
            leader_epoch=4,
            replica_nodes=[1],
            isr_nodes=[1],
            offline_replicas=[],
        )
        for n in range(0 if error else 3)
    ]
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="h", port=9, rack=None)
    topic = TOPIC(error_code=error, name="t", is_internal=False, partitions=parts)
    made = MetadataResponse(throttle_time_ms=0, brokers=[broker], cluster_id="c", controller_id=1, topics=[topic])
    read: MetadataResponse = MetadataResponse.decode(made.encode(version=7), version=7)
    return read


@pytest.mark.parametrize(("error", "kept"), [(5, True), (7, True), (-1, True), (3, False), (29, False)])
def test_a_topic_stays_known_while_an_error_passes(error: int, *, kept: bool) -> None:
    """Else a member would lose its partitions for a moment's error; a deleted topic goes."""
    cluster = ClusterMetadata()
    subject.keep_topics_of_passing_errors(cluster)
    cluster.update_metadata(metadata(error))
    assert cluster.partitions_for_topic("t") is None, "an unknown topic stays unknown"
    cluster.update_metadata(metadata(0))
    cluster.update_metadata(metadata(error))
    assert cluster.partitions_for_topic("t") == ({0, 1, 2} if kept else None)
    assert not kept or cluster.ttl() < 1_000, "it is asked for again"


class Assigned(AsyncConsumerRebalanceListener):
    """A coordinator of a member that owns partitions, which notes what it releases."""

    def __init__(self, owned: set[TopicPartition], protocol: RebalanceProtocol) -> None:
        self._cluster = ClusterMetadata()
        self._cluster.set_topics(sorted(one.topic for one in owned))
        self._rebalance_protocol = protocol
        self._generation = SimpleNamespace(is_lost=lambda: False)
        self._subscription = SubscriptionState()
        self._subscription.subscribe(topics=sorted(one.topic for one in owned), listener=self)
        self._subscription.assign_from_subscribed(sorted(owned))
        self.released: list[set[TopicPartition]] = []

    async def on_partitions_revoked(self, partitions: set[TopicPartition]) -> None:
        """As a listener."""
        self.released.append(partitions)

    async def on_partitions_assigned(self, partitions: set[TopicPartition]) -> None:
        """Not called here."""

    async def _on_join_prepare_async(self, *_: object, **__: object) -> None:
        pass


@pytest.mark.parametrize(
    ("protocol", "listed", "error", "released"),
    [
        pytest.param(RebalanceProtocol.COOPERATIVE, True, 3, True, id="deleted"),
        pytest.param(RebalanceProtocol.COOPERATIVE, True, 0, False, id="still there"),
        pytest.param(RebalanceProtocol.COOPERATIVE, True, 29, False, id="there, but without rights"),
        pytest.param(RebalanceProtocol.COOPERATIVE, False, 3, False, id="assigned by a leader that knew it first"),
        pytest.param(RebalanceProtocol.EAGER, True, 3, False, id="eager, which gives up all"),
    ],
)
def test_partitions_of_a_deleted_topic_are_released_before_the_join(
    protocol: RebalanceProtocol,
    error: int,
    *,
    listed: bool,
    released: bool,
) -> None:
    """Else the answer to the join takes them away, and the group rebalances once more: `on_assign` came twice."""
    deleted, other = TopicPartition("t", 0), TopicPartition("u", 0)
    coordinator: Any = Assigned({deleted, other}, protocol)
    subject.release_deleted_topics(coordinator)
    if listed:
        coordinator._cluster.update_metadata(metadata(0))
    coordinator._cluster.update_metadata(metadata(error))
    asyncio.run(coordinator._on_join_prepare_async(1, "m", timeout_ms=5))
    assert coordinator.released == ([{deleted}] if released else [])
    assert coordinator._subscription.assigned_partitions() == ({other} if released else {deleted, other})
