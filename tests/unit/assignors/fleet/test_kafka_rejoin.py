"""An agent whose attempts to join again fail keeps its last view while it may."""

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from assignors.errors import MembershipError
from assignors.fleet import Agent, KafkaMembers, Session, Standing, View, kafka_membership
from assignors.fleet.kafka_membership import MembershipRound
from assignors.fleet.topic_descriptions import Sighting
from tests.unit.assignors.fleet.model_fleet import ModelAgent, Server

VIEW = View((Agent("a"), Agent("b")), 7)


class Member:
    """A member of the group, whose broker a test turns off."""

    away: ClassVar[bool] = False

    def __init__(self, config: dict[str, Any], **_: object) -> None:
        self.config = config
        self.failed: Exception | None = None
        self.fatal = False
        self.heartbeat = SimpleNamespace(last_receive=-1.0, last_reset=time.monotonic())

    @property
    def answered_s(self) -> float:
        """When the broker answered last."""
        return float(max(self.heartbeat.last_receive, self.heartbeat.last_reset))

    def start(self) -> "Member":
        """Connect, or not."""
        if Member.away:
            raise MembershipError("no broker answers")
        return self

    def close(self) -> None:
        """Nothing to end."""


class World:
    """One agent that has joined, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.others_answer = True
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(kafka_membership, "GroupMember", Member)
        monkeypatch.setattr(Member, "away", False)
        self.members = KafkaMembers(Agent("a"), {}, session=Session(session_s=10), witness=lambda: self.others_answer)
        self.join()
        self.hear()

    @property
    def member(self) -> Any:
        """The present member of the group."""
        return self.members._member

    def join(self) -> None:
        """Try to join."""
        self.members._join()

    def hear(self) -> None:
        """The join is answered."""
        self.members._hear(MembershipRound(view=VIEW, owners={"a": self.members._process}))

    def fail(self, *, fatal: bool = False) -> None:
        """The membership ends."""
        self.member.failed, self.member.fatal = MembershipError("the session has ended"), fatal
        self.members._look(self.member)

    def expect(self, standing: Standing, *, reads: bool) -> None:
        """The last view is kept in every standing."""
        state = self.members.state()
        assert (state.view, state.standing, state.reads) == (VIEW, standing, reads)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """An agent that has joined."""
    return World(monkeypatch)


def test_a_failed_join_keeps_the_view_while_another_server_answers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home cluster is restarted: an agent that dropped its view would stop reading all other clusters."""
    world.fail()
    world.expect(Standing.MEMBER, reads=True)
    monkeypatch.setattr(Member, "away", True)
    world.join()
    world.expect(Standing.MEMBER, reads=True)
    assert "no broker answers" in world.members.state().reason
    world.now += 60
    world.join()
    world.expect(Standing.UNREACHABLE, reads=True)
    assert world.members.state().heard_s == 100.0
    world.others_answer = False
    world.join()
    world.expect(Standing.ISOLATED, reads=False)
    world.others_answer = True
    monkeypatch.setattr(Member, "away", False)
    world.join()
    world.members._look(world.member)
    world.expect(Standing.UNREACHABLE, reads=True)
    world.hear()
    world.expect(Standing.MEMBER, reads=True)
    assert not world.members.state().reason


def test_a_connection_without_a_join_is_no_answer_of_the_group(world: World) -> None:
    """A new member's clock begins with it: attempts that connect and fail would seem to be answers for ever."""
    for _ in range(5):
        world.fail()
        world.now += 2
        world.join()
        world.members._look(world.member)
    world.expect(Standing.UNREACHABLE, reads=True)
    assert world.members.state().heard_s == 100.0
    assert world.members.state().reason


def test_a_group_that_is_silent_is_not_taken_for_a_cluster_that_is_away(world: World) -> None:
    """An agent that is killed in a rebalance delays it by its session; the log sent people to a healthy cluster."""
    world.now += 60
    world.members._look(world.member)
    world.expect(Standing.UNREACHABLE, reads=True)
    assert "a rebalance waits for a dead agent; the last view stays" in world.members.state().reason


def test_a_coordinator_that_is_silent_is_left_after_a_session(world: World) -> None:
    """Another broker takes the group over after about that time; kafka-python's own limit is half a minute."""
    assert world.member.config["request_timeout_ms"] == world.member.config["session_timeout_ms"] == 10_000


def test_properties_of_a_reading_client_do_not_change_the_membership(world: World) -> None:
    """With `session.timeout.ms` of 45 s in the file, the others kept a dead agent that long."""
    times = {"session_timeout_ms": 45_000, "heartbeat_interval_ms": 9_000, "max_poll_interval_ms": 600_000}
    for given in ({}, {**times, "fetch_max_wait_ms": 60_000, "group_id": "readers"}):
        members = KafkaMembers(Agent("a"), given, session=Session(session_s=10))
        members._join()
        used: Any = members._member
        assert used.config == world.member.config
    members = KafkaMembers(Agent("a"), {"request_timeout_ms": 60_000}, session=Session(session_s=10))
    members._join()
    used = members._member
    assert used.config["request_timeout_ms"] == 60_000


def test_an_error_that_a_retry_cannot_fix_ends_the_reading_within_the_session(world: World) -> None:
    """The others remove the agent and read its topics, whatever other servers still answer to it."""
    world.fail(fatal=True)
    world.expect(Standing.MEMBER, reads=True)
    world.now += 7
    world.join()
    world.members._look(world.member)
    world.expect(Standing.ISOLATED, reads=False)
    world.hear()
    world.expect(Standing.MEMBER, reads=True)


def test_the_status_shows_the_age_of_a_view() -> None:
    """An operator sees for how long the agent has read by an old view."""
    one = ModelAgent("a", Server(), Sighting(cluster="c"))
    one.step()
    assert one.loop.status()["view_age_s"] is None, "a model does not say"
    one.members._state = replace(one.members.state(), reason="the server is away", heard_s=time.monotonic() - 12)
    status = one.loop.status()
    assert status["view_age_s"] == pytest.approx(12, abs=1)
    assert status["problems"] == ["the server is away"]
