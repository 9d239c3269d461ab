"""One conformance suite for all memberships: static, Redis, Kafka."""

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest

from assignors.fleet import (
    Agent,
    KafkaMembers,
    Members,
    Membership,
    RedisMembers,
    Session,
    Standing,
    StaticMembers,
    View,
)
from assignors.fleet.membership_contract import Witness
from spark_sink.demo.cluster import Cluster
from tests.integration.assignors.fleet.conftest import Wire
from tests.redis_server import RedisServer

pytestmark = pytest.mark.integration


class Fleet(Protocol):
    """A fleet of one kind of membership."""

    session: Session

    def member(
        self, name: str, witness: Witness | None = None, capacity: float = 1.0, settings: tuple[str, ...] = ()
    ) -> Members:
        """Make the membership of an agent, not started."""
        ...

    def wire(self, name: str) -> Wire:
        """What all that this agent sends goes through."""
        ...

    def close(self) -> None:
        """Close everything that was created."""
        ...


class _Fleet:
    session = Session(session_s=2.5)

    def __init__(self) -> None:
        self.name = f"fleet-{uuid.uuid4().hex[:8]}"
        self.wires: dict[str, Wire] = {}
        self.made: list[Members] = []

    def wire(self, name: str) -> Wire:
        return self.wires[name]

    def close(self) -> None:
        for wire in self.wires.values():
            wire.mend()
        for one in self.made:
            one.close()
        for wire in self.wires.values():
            wire.close()

    def keep(self, made: Members) -> Members:
        self.made.append(made)
        return made


class StaticFleet(_Fleet):
    """Two agents, written down."""

    def member(
        self,
        name: str,
        witness: Witness | None = None,  # noqa: ARG002 -- of the other fleets
        capacity: float = 1.0,
        settings: tuple[str, ...] = (),
    ) -> Members:
        """Make a membership."""
        return self.keep(StaticMembers(Agent(name, capacity, settings=settings), (Agent("a", 2.0), Agent("b"))))


class RedisFleet(_Fleet):
    """Agents on one server, each through a wire of its own."""

    def __init__(self, server: RedisServer) -> None:
        super().__init__()
        self._server = server

    def member(
        self, name: str, witness: Witness | None = None, capacity: float = 1.0, settings: tuple[str, ...] = ()
    ) -> Members:
        """Make a membership."""
        wire = self.wires.setdefault(name, Wire(("127.0.0.1", self._server.port)))
        url = f"redis://127.0.0.1:{wire.port}/0"
        return self.keep(RedisMembers(Agent(name, capacity, settings=settings), url, self.name, self.session, witness))


class KafkaFleet(_Fleet):
    """Agents on one cluster, each through a wire of its own."""

    session = Session(session_s=6.0)  # the shortest that a broker allows by default

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def member(
        self, name: str, witness: Witness | None = None, capacity: float = 1.0, settings: tuple[str, ...] = ()
    ) -> Members:
        """Make a membership."""
        wire = self.wires.setdefault(name, Wire())
        kafka = {
            "bootstrap_servers": self._cluster.bootstrap_servers.split(","),
            "proxy_url": f"socks5://127.0.0.1:{wire.port}",
            "request_timeout_ms": 8_000,
        }
        return self.keep(
            KafkaMembers(Agent(name, capacity, settings=settings), kafka, self.name, self.session, witness)
        )


def _make(kind: str, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    made: StaticFleet | RedisFleet | KafkaFleet
    if kind == "redis":
        made = RedisFleet(request.getfixturevalue("redis_server"))
    elif kind == "kafka":
        made = KafkaFleet(request.getfixturevalue("cluster"))
    else:
        made = StaticFleet()
    yield made
    made.close()


@pytest.fixture(params=["static", "redis", "kafka"])
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """A fleet of each kind."""
    yield from _make(request.param, request)


@pytest.fixture(params=["redis", pytest.param("kafka", marks=pytest.mark.slow)])
def living(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """A fleet of each kind whose agents come and go."""
    yield from _make(request.param, request)


def until(members: Members, fits: Callable[[Membership], bool], timeout_s: float = 30) -> Membership:
    """Wait for a state."""
    deadline = time.monotonic() + timeout_s
    state = members.state()
    while not fits(state):
        assert time.monotonic() < deadline, f"not so in {timeout_s} s: {state}"
        state = members.wait(state, 0.5)
    return state


def has(*names: str) -> Callable[[Membership], bool]:
    """Exactly these live."""
    return lambda state: state.reads and state.view is not None and state.view.ids == names


def test_agents_see_the_same_view_and_equal_versions_are_equal_views(fleet: Fleet) -> None:
    """A view is a value; all see the same one, an observer too, and waiting without a change ends in time."""
    one, two = fleet.member("a", capacity=2.0), fleet.member("b")
    assert one.state().view is None
    one.start()
    two.start()
    first, second = until(one, has("a", "b")).view, until(two, has("a", "b")).view
    assert first is not None
    assert second is not None
    if first.version == second.version:
        assert first == second
    assert [agent.capacity for agent in first.members] == [2.0, 1.0]
    seen = fleet.member("a").observe().view
    assert seen is not None
    assert seen.ids == ("a", "b")
    began = time.monotonic()
    one.wait(one.state(), 0.2)
    assert time.monotonic() - began < 5
    one.close()
    one.close()
    assert one.state().standing is Standing.LEFT
    assert not one.state().reads


def test_who_leaves_is_gone_at_once_and_remembered(living: Fleet) -> None:
    """No session has to expire, versions grow, and the view names the departed agents."""
    one, two = living.member("a").start(), living.member("b").start()
    before = until(one, has("a", "b")).view
    began = time.monotonic()
    two.close()
    after = until(one, has("a")).view
    assert time.monotonic() - began < living.session.session_s
    assert before is not None
    assert after is not None
    assert after.version > before.version
    assert [agent.id for agent in after.departed] == ["b"]


def test_a_partitioned_agent_stops_itself_before_the_others_count_it_out(living: Fleet) -> None:
    """It reaches nothing, so it stops; the others remove it after the session; when the wire is mended it is back."""
    one, two = living.member("a").start(), living.member("b", witness=lambda: False).start()
    until(one, has("a", "b"))
    until(two, has("a", "b"))
    living.wire("b").cut()
    cut = time.monotonic()
    alone = until(two, lambda state: state.standing is Standing.ISOLATED)
    stopped = time.monotonic()
    assert not alone.reads
    until(one, has("a"))
    counted_out = time.monotonic()
    assert stopped <= counted_out
    assert counted_out - cut > living.session.lease_s, "one lost beat moves nothing"
    living.wire("b").mend()
    until(one, has("a", "b"))
    until(two, has("a", "b"))


def test_an_agent_that_reaches_the_clusters_keeps_the_last_view(living: Fleet) -> None:
    """Ingestion continues without the membership's server; an agent is isolated only if nothing answers."""
    one = living.member("a", witness=lambda: True).start()
    until(one, has("a"))
    living.wire("a").cut()
    state = until(one, lambda state: state.standing is Standing.UNREACHABLE)
    assert state.reads
    assert state.reason
    living.wire("a").mend()
    until(one, lambda state: state.standing is Standing.MEMBER)


def test_of_two_processes_with_one_id_one_is_refused_until_the_other_is_gone(living: Fleet) -> None:
    """The first continues undisturbed, the second reports why it waits."""
    one = living.member("a").start()
    until(one, has("a"))
    two = living.member("a").start()
    refused = until(two, lambda state: state.standing is Standing.REFUSED)
    assert "'a' is in use" in refused.reason
    assert not refused.reads
    assert one.state().standing is Standing.MEMBER
    one.close()
    until(two, has("a"))


@pytest.mark.long
@pytest.mark.parametrize(
    "how",
    [
        "shut down with its data",
        *(pytest.param(how, marks=pytest.mark.slow) for how in ("flushed", "killed", "shut down empty")),
    ],
)
def test_a_redis_that_forgets_or_restarts_moves_nothing(redis_server: RedisServer, how: str) -> None:
    """Flushed, killed, or restarted by its operator, empty or with its earlier data: no agent is removed.

    One that was away for longer than a session and comes back with its data knows only beats that are too old; one
    that comes back empty is told the last view by whoever speaks first.
    """
    fleet = RedisFleet(redis_server)
    made = [fleet.member(name, witness=lambda: True).start() for name in ("a", "b", "c")]
    for one in made:
        until(one, has("a", "b", "c"))
    before = made[0].state().view
    assert before is not None
    if how == "flushed":
        redis_server.flush()
    else:
        gone = time.monotonic()
        if how == "killed":
            redis_server.kill()
        else:
            redis_server.shut_down(save="data" in how)
        for one in made:
            until(one, lambda state: state.standing is Standing.UNREACHABLE)
        while (left := gone + fleet.session.session_s + 0.5 - time.monotonic()) > 0:
            made[0].wait(made[0].state(), left)
        redis_server.start()
    deadline = time.monotonic() + fleet.session.session_s + 2
    while time.monotonic() < deadline:
        for one in made:
            state = one.wait(one.state(), 0.1)
            assert state.view is not None
            assert state.view.ids == ("a", "b", "c")
            assert not state.view.departed
            assert state.view.version >= before.version
    assert [one.state().standing for one in made] == [Standing.MEMBER] * 3
    made[2].close()
    until(made[0], has("a", "b"))
    fleet.close()


@pytest.mark.long
def test_a_new_agent_that_speaks_first_after_a_flush_counts_no_other_out(redis_server: RedisServer) -> None:
    """It knows no view: the first agent after it brings the last one, whose members keep a session's time to speak."""
    fleet = RedisFleet(redis_server)
    made = [fleet.member(name, witness=lambda: True).start() for name in ("a", "b", "c", "d")]
    for one in made:
        until(one, has("a", "b", "c", "d"))
    new = fleet.member("new", witness=lambda: True)
    redis_server.flush()
    new.start()
    deadline = time.monotonic() + fleet.session.session_s + 2
    while time.monotonic() < deadline:
        for one in made:
            state = one.wait(one.state(), 0.05)
            assert state.view is not None
            assert set(state.view.ids) >= {"a", "b", "c", "d"}
            assert not state.view.departed
    until(made[0], has("a", "b", "c", "d", "new"))
    fleet.close()


def test_a_view_stays_while_nothing_changes_whatever_the_capacity(living: Fleet) -> None:
    """A number with more digits than a server keeps is no new capacity at every beat."""
    one = living.member("a", capacity=1 / 3).start()
    first = until(one, has("a"))
    deadline = time.monotonic() + 1.5 * living.session.session_s
    while (left := deadline - time.monotonic()) > 0:
        assert one.wait(first, left).view == first.view


def test_a_view_has_the_settings_that_agents_declare(living: Fleet) -> None:
    """Otherwise no agent could see that another computes with different ones; a mere heartbeat is no new view."""
    old = living.member("a", settings=("lanes=4", "seed=0")).start()
    assert (until(old, has("a")).view or View()).members[0].settings == ("lanes=4", "seed=0")
    old.close()
    new = living.member("a", settings=("lanes=8", "seed=0")).start()
    first = until(new, has("a"))
    deadline = time.monotonic() + living.session.session_s
    while (left := deadline - time.monotonic()) > 0:
        assert new.wait(first, left).view == first.view
    assert (first.view or View()).members[0].settings == ("lanes=8", "seed=0")
    assert (new.observe().view or View()).members == (first.view or View()).members


def test_an_agent_that_may_not_join_says_why_once(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """A session shorter than the broker allows: a reason in the state, and one line however often it tries."""
    kafka = {"bootstrap_servers": cluster.bootstrap_servers.split(",")}
    members = KafkaMembers(Agent("a"), kafka, f"fleet-{uuid.uuid4().hex[:8]}", Session(session_s=1.0)).start()
    try:
        until(members, lambda state: "InvalidSessionTimeout" in state.reason)
        deadline = time.monotonic() + 2
        while (left := deadline - time.monotonic()) > 0:
            members.wait(members.state(), left)
        assert members.state().standing is Standing.JOINING
    finally:
        members.close()
    assert caplog.text.count("cannot join") == 1


def test_who_looks_during_a_rebalance_sees_who_lives(cluster: Cluster) -> None:
    """A broker omits the members' metadata while they join: a reader then waits instead of seeing no members."""
    fleet = KafkaFleet(cluster)
    try:
        until(fleet.member("a").start(), has("a"))
        fleet.member("b").start()
        watching = fleet.member("c")
        deadline = time.monotonic() + 20
        seen: tuple[str, ...] = ()
        while seen != ("a", "b"):
            view = watching.observe().view
            assert view is not None
            seen = view.ids
            assert "a" in seen
            assert time.monotonic() < deadline
    finally:
        fleet.close()
