"""The agents' knowledge of each other, without a server."""

from collections.abc import Mapping
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.errors import CoordinatorNotAvailableError

from assignors.errors import FleetError
from assignors.fleet import Agent, Membership, RedisMembers, Session, Standing, StaticMembers, View, kafka_membership
from assignors.fleet.kafka_membership import Candidate, KafkaMembers, MembershipRound, next_round
from assignors.fleet.membership_contract import StateCell
from spark_sink.checks import ANSWER_S
from spark_sink.checks.findings import LIMIT_S


def candidate(member: str, agent: str, last: MembershipRound | None = None, process: str | None = None) -> Candidate:
    """A member of the group."""
    return Candidate(
        member=member, agent=Agent(agent), process=process or f"p-{member}", last=last or MembershipRound()
    )


def test_a_round_goes_on_from_the_newest_view_whoever_leads() -> None:
    """Versions grow, the departed are remembered, and the order in which members are listed means nothing."""
    first = next_round([candidate("m1", "a"), candidate("m2", "b"), candidate("m3", "c")])
    assert first.view == View((Agent("a"), Agent("b"), Agent("c")), 1)
    left = [candidate("m1", "a", first), candidate("m3", "c", first), candidate("m4", "d")]
    made = [next_round(order) for order in permutations(left)]
    assert all(one == made[0] for one in made)
    assert made[0].view == View((Agent("a"), Agent("c"), Agent("d")), 2, (Agent("b"),))
    assert MembershipRound.decode(made[0].encode()) == made[0]


def test_a_round_without_a_change_is_the_same_view() -> None:
    """A rebalance for another reason (a coordinator that moved) moves no topic."""
    first = next_round([candidate("m1", "a"), candidate("m2", "b")])
    assert next_round([candidate("m1", "a", first), candidate("m2", "b", first)]) == first


def test_of_two_processes_with_one_id_the_one_that_was_there_goes_on() -> None:
    """The ids from the broker have no effect."""
    first = next_round([candidate("m2", "a")])
    both = next_round([candidate("m1", "a"), candidate("m2", "a", first)])
    assert both.owners == {"a": "p-m2"}
    assert both.view == first.view


def test_views_remember_departures_in_their_order_and_forget_the_oldest() -> None:
    """An agent that returns is no longer departed."""
    view = View(tuple(Agent(name) for name in "abcd"), 1)
    for name in "cad":
        view = view.without(name)
    assert [agent.id for agent in view.departed] == ["c", "a", "d"]
    back = view.following((*view.members, Agent("a")), 9, most_departed=1)
    assert [agent.id for agent in back.departed] == ["d"]
    assert View.of(back.value()) == back


@pytest.mark.parametrize(
    ("silent_s", "witness", "standing"),
    [
        (5.9, None, Standing.MEMBER),
        (6.1, None, Standing.ISOLATED),
        (6.1, False, Standing.ISOLATED),
        (6.1, True, Standing.UNREACHABLE),
    ],
)
def test_an_agent_in_the_dark_stops_within_the_grace(
    silent_s: float,
    witness: bool | None,  # noqa: FBT001
    standing: Standing,
) -> None:
    """The lease ends two beats before the session, in which the others count it out."""
    session = Session(session_s=10)
    assert session.lease_s + session.grace_s == session.session_s
    assert session.standing(silent_s, None if witness is None else lambda: witness) is standing


def test_an_older_view_never_replaces_a_newer_one() -> None:
    """Answers may overtake each other."""
    cell = StateCell()
    cell.change(view=View((Agent("a"),), 5))
    cell.change(view=View((Agent("b"),), 4), standing=Standing.MEMBER)
    assert cell.state == Membership(view=View((Agent("a"),), 5), standing=Standing.MEMBER)


def test_a_static_agent_must_be_listed() -> None:
    """Otherwise it would read nothing without a reported reason."""
    with pytest.raises(FleetError, match="'x' is none of"):
        StaticMembers(Agent("x"), (Agent("a"),))
    with pytest.raises(FleetError, match="session_s=0"):
        Session(session_s=0)


def test_the_password_of_redis_is_in_no_reason(caplog: pytest.LogCaptureFixture) -> None:
    """Reasons are problems of the agent: many people see its page, its probes and its status file."""
    one = RedisMembers(Agent("a"), "redis://user:canary@127.0.0.1:1/0", session=Session(session_s=0.5))
    with pytest.raises(FleetError, match=r"Redis at redis://\*\*\*@127.0.0.1:1/0 does not answer") as raised:
        one.observe()
    seen = one.state()
    one.start()
    while not (seen := one.wait(seen, 5)).reason:
        pass
    one.close()
    with pytest.raises(FleetError, match=r"need redis://host:port/db or redis\+sentinel://.*, and %XX") as refused:
        RedisMembers(Agent("a"), "redis://:canary/canary@127.0.0.1:1/0")
    assert "127.0.0.1:1" in seen.reason
    assert "canary" not in f"{raised.value} {seen.reason} {refused.value} {caplog.text}"


class NewCoordinator:
    """An admin client of a new cluster: it has no coordinator before the third question, or never.

    Args:
        after: questions without an answer.
    """

    def __init__(self, after: int) -> None:
        self._left = after

    def describe_groups(self, groups: list[str]) -> dict[str, dict[str, object]]:
        """An empty group, once there is a coordinator."""
        self._left -= 1
        if self._left >= 0:
            raise CoordinatorNotAvailableError
        return {groups[0]: {"group_state": "Dead", "members": []}}

    def close(self) -> None:
        """Nothing to close."""


def answering(monkeypatch: pytest.MonkeyPatch, admin: NewCoordinator) -> Mapping[str, object]:
    """Let this client answer; returns the settings with which it is made, once it is."""
    given: dict[str, object] = {}

    class Client:
        DEFAULT_CONFIG = KafkaAdminClient.DEFAULT_CONFIG

        def __new__(cls, **config: object) -> Any:
            given.update(config)
            return admin

    monkeypatch.setattr(kafka_membership, "KafkaAdminClient", Client)
    return given


def test_a_new_cluster_has_no_live_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its coordinators come with the first question: `azimuth agent --check` called the cluster dead."""
    answering(monkeypatch, NewCoordinator(2))
    assert KafkaMembers(Agent("a"), {"bootstrap_servers": ["b:1"]}).observe().view == View()


def test_properties_of_a_reading_client_are_left_out_of_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `isolation.level` in the file, `azimuth agent --check` said that the home cluster does not answer."""
    reading = {"bootstrap_servers": ["b:1"], "isolation_level": "read_committed", "fetch_max_bytes": 1}
    given = answering(monkeypatch, NewCoordinator(0))
    KafkaMembers(Agent("a"), {**reading, "request_timeout_ms": 1234}).observe()
    assert given.keys() <= KafkaAdminClient.DEFAULT_CONFIG.keys()
    assert (given["bootstrap_servers"], given["request_timeout_ms"]) == (["b:1"], 1234)


def test_a_coordinator_that_does_not_come_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers answer, so a sentence that says they do not would send the operator to the wrong place."""
    answering(monkeypatch, NewCoordinator(1_000_000))
    passed_s: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(passed_s), sleep=passed_s.append)
    monkeypatch.setattr(kafka_membership, "time", clock)
    members = KafkaMembers(Agent("a"), {"bootstrap_servers": ["b:1", "c:2"]}, fleet="f")
    with pytest.raises(FleetError, match=r"home cluster b:1,c:2: the coordinator of group azimuth\.fleet\.f, .* again"):
        members.observe()
    assert ANSWER_S <= sum(passed_s) < LIMIT_S - 0.5, "`azimuth agent --check` said `check its address`"
