"""The settings of the kafka-python assignors, and those that are sent to the leader."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assignors import (
    BoundError,
    HRWAssignor,
    Member,
    MembershipError,
    NodesError,
    OverrideError,
    ShuffledRoundRobinAssignor,
    StrategyError,
    Topic,
    WeightError,
    WorkersError,
)
from assignors.protocol.join_subscription import UserData, decode_user_data
from tests.unit.assignors.groups import Cluster, joined, read


def test_user_data_says_agent_weight_and_configuration() -> None:
    """A member sends the required settings, and a leader with this code reads them."""
    data = UserData(agent="a", weight=2.0, plan="workers=2")
    assert decode_user_data(data.encode()) == data
    assert decode_user_data(None) == decode_user_data(b"") == UserData()
    assert decode_user_data(b"x" * 5000) is None


def test_only_agent_and_weight_are_worth_user_data() -> None:
    """Everything else the leader plans without, and user data keeps a broker from migrating the group (KIP-848)."""
    settings: list[dict[str, Any]] = [{"epsilon": 0.2}, {"workers": 2}, {"seed": 1}, {"rack": "a"}, {"node": "x"}]
    assert not any(HRWAssignor(**one).metadata({"t"}).user_data for one in settings)
    assert all(HRWAssignor(**one).metadata({"t"}).user_data for one in ({"agent": "a"}, {"weight": 2.0}))


def test_a_member_without_user_data_is_not_reported_as_different(caplog: pytest.LogCaptureFixture) -> None:
    """The leader does not know its settings."""
    lead = HRWAssignor(workers=2)
    lead.assign(Cluster({"t": 2}), [joined(HRWAssignor(workers=3), "m", {"t"}, "i"), joined(lead, "n", {"t"}, "j")])
    assert caplog.messages == []


def test_weight_travels_to_the_leader() -> None:
    """A member of weight 3 gets three times as much."""
    people = [joined(HRWAssignor(agent="m0"), "m0", {"t"}), joined(HRWAssignor(agent="m1", weight=3.0), "m1", {"t"})]
    answer = read(HRWAssignor().assign(Cluster({"t": 8}), people))
    assert {m: len(mine) for m, mine in answer.items()} == {"m0": 2, "m1": 6}


@pytest.mark.parametrize(
    ("configuration", "error"),
    [
        ({"epsilon": -1}, BoundError),
        ({"weight": 0}, WeightError),
        ({"workers": 0}, WorkersError),
        ({"workers": Path("/nowhere/workers.json")}, WorkersError),
        ({"workers": lambda: -1}, WorkersError),
        ({"rack_by": "isr"}, StrategyError),
    ],
)
def test_a_wrong_configuration_is_found_where_it_is_made(configuration: dict[str, Any], error: type[Exception]) -> None:
    """Not on the leader, in the middle of a rebalance."""
    with pytest.raises(error):
        HRWAssignor(**configuration)


@pytest.mark.parametrize(
    ("given_settings", "error"),
    [
        ({"epsilon": "0.1"}, BoundError),
        ({"weight": "2"}, WeightError),
        ({"weight": None}, WeightError),
        ({"workers": lambda: 1 // 0}, WorkersError),
        ({"watch_interval_s": 0}, WorkersError),
        ({"node": "("}, NodesError),
        ({"node": 5}, NodesError),
        ({"seed": "a"}, StrategyError),
        ({"agent": 5}, MembershipError),
        ({"agent": "x" * 1001}, MembershipError),
        ({"rack": b"az-a"}, MembershipError),
        ({"rack": "\ud800"}, MembershipError),
        ({"epsilon": 10**400}, BoundError),
        ({"weight": 10**400}, WeightError),
        ({"weight": float("nan")}, WeightError),
        ({"watch_interval_s": "5"}, WorkersError),
        ({"watch_interval_s": float("inf")}, WorkersError),
    ],
    ids=lambda one: (
        one.__name__
        if isinstance(one, type)
        else ",".join(f"{k}={v!r}" for k, v in one.items() if not callable(v)) or "a callable"
    ),
)
def test_a_wrong_setting_is_found_before_the_group_needs_it(
    given_settings: dict[str, Any], error: type[Exception]
) -> None:
    """If only the leader's plan found the error, every rebalance would lose its plan, far from the cause."""
    with pytest.raises(error):
        HRWAssignor(**given_settings)


@pytest.mark.parametrize("kind", [HRWAssignor, ShuffledRoundRobinAssignor])
@pytest.mark.parametrize(
    ("given_settings", "said"),
    [
        ({"cooperative": "yes"}, "cooperative='yes': need True or False"),
        ({"cooperative": None}, "cooperative=None: need True or False"),
        ({"agent": ""}, "agent='': need a name, or None for the group instance id or the member id"),
    ],
    ids=str,
)
def test_settings_that_would_pass_as_others_are_refused(
    kind: Callable[..., object], given_settings: dict[str, Any], said: str
) -> None:
    """The text "no" counts as true, and members with an empty name count as one, from an unset variable perhaps."""
    with pytest.raises(MembershipError) as refused:
        kind(**given_settings)
    assert str(refused.value) == said


def test_keep_is_a_flag() -> None:
    """The text "false" counts as true."""
    with pytest.raises(MembershipError, match=r"keep='false': need True or False"):
        ShuffledRoundRobinAssignor(keep="false")  # type: ignore[arg-type]


def test_many_patterns_do_not_push_out_weight_and_agent() -> None:
    """User data are limited in size: the text of a long configuration is shortened, but two still differ."""
    long = {f"topic-{i:03d}": 2 for i in range(400)}
    cluster = Cluster({"t": 9})
    lead, heavy = HRWAssignor(workers=long, agent="a"), HRWAssignor(workers=long, agent="b", weight=2)
    given = read(lead.assign(cluster, [joined(lead, "1", {"t"}), joined(heavy, "2", {"t"})]))
    assert {m: len(mine) for m, mine in given.items()} == {"1": 3, "2": 6}
    other = joined(HRWAssignor(workers=long | {"topic-399": 3}, agent="c"), "3", {"t"})
    same, differs = (decode_user_data(m.metadata.user_data) for m in (joined(lead, "1", {"t"}), other))
    assert same is not None
    assert differs is not None
    assert same.plan != differs.plan


def test_an_agent_of_half_a_character_is_foreign() -> None:
    """JSON may contain text that cannot be hashed: the plan ignores it, without the fallback plan."""
    raw = json.dumps({"azimuth": 1, "agent": "\ud800", "weight": 1, "plan": ""}).encode()
    assert decode_user_data(raw) is None


@pytest.mark.parametrize("kind", [HRWAssignor, ShuffledRoundRobinAssignor])
def test_a_pinned_topic_goes_to_its_member_while_that_is_there(
    kind: type[HRWAssignor | ShuffledRoundRobinAssignor], caplog: pytest.LogCaptureFixture
) -> None:
    """Members come and go: without the named one the topic is planned like any other, which is logged once."""
    lead = kind(overrides={"t": "host-1"})
    people = [joined(kind(), f"m{n}", {"t", "u"}, f"host-{n}") for n in range(3)]
    cluster = Cluster({"t": 3, "u": 6})
    answer = read(lead.assign(cluster, people))
    assert {topic: {m for m, mine in answer.items() if topic in dict(mine)} for topic in ("t", "u")} == {
        "t": {"m1"},
        "u": {"m0", "m2"},
    }
    assert caplog.messages == []
    for _ in range(2):
        answer = read(lead.assign(cluster, [people[0], people[2]]))
        assert sorted(p for mine in answer.values() for p in mine if p[0] == "t") == [("t", 0), ("t", 1), ("t", 2)]
    (said,) = (one for one in caplog.messages if "override" in one)
    assert said.startswith("override for topic 't': not in the group, or without a subscription to it: host-1; it is")


@pytest.mark.parametrize("kind", [HRWAssignor, ShuffledRoundRobinAssignor])
@pytest.mark.parametrize("overrides", [["t"], {"t": 3}, {"t": []}, {5: "host"}])
def test_overrides_that_are_none_are_found_where_they_are_made(
    kind: type[HRWAssignor | ShuffledRoundRobinAssignor],
    overrides: Any,
) -> None:
    """Not on the leader, in the middle of a rebalance."""
    with pytest.raises(OverrideError, match="override"):
        kind(overrides=overrides)


@pytest.mark.parametrize("kind", [HRWAssignor, ShuffledRoundRobinAssignor])
def test_weights_of_a_function_are_read_before_each_plan(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Rates change; and a function that fails must not stop a group, which keeps the last weights."""
    found: list[Any] = [{"a": 8.0, "b": 1.0, "c": 1.0}, {"a": 1.0, "b": 8.0, "c": 1.0}, RuntimeError("away"), {"a": -1}]
    lead = kind(weights=lambda: _given(found))
    topics = [Topic(name, 1) for name in "abc"]
    members = [Member(f"m{n}", frozenset("abc")) for n in range(2)]

    def alone() -> list[str]:
        return [mine[0][0] for mine in lead._kafka_azimuth_plan(topics, members).partitions.values() if len(mine) == 1]

    assert alone() == ["a"]
    for expected in (["b"], ["b"], ["b"]):
        lead.metadata({"a"})
        assert alone() == expected
    assert caplog.text.count("the source failed") == 1


def _given(found: list[Any]) -> dict[str, float]:
    one = found.pop(0)
    if isinstance(one, Exception):
        raise one
    return dict(one)


@pytest.mark.parametrize("weights", [{"a": -1.0}, 3, lambda: {"a": "x"}])
@pytest.mark.parametrize("kind", [HRWAssignor, ShuffledRoundRobinAssignor])
def test_weights_that_cannot_be_are_found_where_they_are_made(kind: Any, weights: Any) -> None:
    """Not at the first rebalance, in the leader's event loop."""
    with pytest.raises(WeightError, match="weight"):
        kind(weights=weights)
