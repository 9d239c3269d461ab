"""A look at the lag: so many requests by broker and group, whatever the number of partitions, and one broker away."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from assignors.clients.log_offsets import LogOffsets
from assignors.errors import MembershipError
from assignors.scaling import NEVER, UNKNOWN, kafka_lag
from assignors.scaling.kafka_lag import KafkaLag, TopicFacts
from producer.testing import MockCluster

BROKERS = 3


class Answer:
    """A future that is done."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def result(self, _timeout_s: float) -> Any:
        """Give it."""
        return self._value


class Admin:
    """An admin client that counts its calls, each of them one request; the mock cluster answers only some of them."""

    def __init__(self, admin: Any, asked: Counter[str]) -> None:
        self._admin, self._asked = admin, asked

    def list_topics(self, timeout: float) -> Any:
        """Ask the mock cluster."""
        self._asked["Metadata of all topics"] += 1
        return self._admin.list_topics(timeout=timeout)

    def describe_configs(self, resources: Sequence[object]) -> Mapping[object, Answer]:
        """Say that all is kept for an hour."""
        self._asked["DescribeConfigs"] += 1
        settings = {"retention.ms": SimpleNamespace(value="3600000"), "cleanup.policy": SimpleNamespace(value="delete")}
        return {one: Answer(settings) for one in resources}

    def list_consumer_groups(self, request_timeout: float) -> Answer:  # noqa: ARG002 -- the client's
        """Name the groups of two lanes."""
        self._asked["ListGroups"] += 1
        return Answer(SimpleNamespace(valid=[SimpleNamespace(group_id=f"g.lane-{n}") for n in range(2)], errors=[]))


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """Three brokers."""
    with MockCluster() as made:
        made.wait_for_members(500)
        yield made


def requests_of(mock: MockCluster, topics: Mapping[str, int]) -> Counter[str]:
    """Count the requests of the second observation, by kind; the first observation also connects."""
    asked: Counter[str] = Counter()
    servers = mock.bootstrap_servers
    lag = KafkaLag({"bootstrap.servers": servers})
    counting: Any = Admin(lag._admin, asked)
    lag._admin = counting
    # The mock cluster does not say which versions it speaks.
    lag._logs = {
        group: LogOffsets.connect(
            {"bootstrap_servers": servers.split(","), "group_id": group, "api_version": (2, 0)},
        )
        for group in ("g", *lag._lanes("g")[0])
    }
    try:
        for _ in range(2):
            asked.clear()
            for logs in lag._logs.values():
                _count(logs, asked)
            facts = lag.topics(list(topics), None)
            seen = lag.observe("g", facts)
    finally:
        for logs in lag._logs.values():
            logs.close()
    assert {name: one.partitions for name, one in facts.items()} == dict(topics)
    assert all((one.end == 0).all() and (one.start == 0).all() and (one.committed == -1).all() for one in seen.values())
    return asked


def _count(logs: LogOffsets, asked: Counter[str]) -> None:
    send = type(logs._manager).send

    def counted(request: Any, *arguments: Any, **named: Any) -> Any:
        asked[type(request).__name__] += 1
        return send(logs._manager, request, *arguments, **named)

    logs._manager.send = counted


def test_requests_do_not_grow_with_partitions(mock: MockCluster) -> None:
    """Ends and beginnings: one a broker each; commits: one for the group and each of its lanes; the rest once."""
    leaders = [1, 2, 3]
    mock.create("few", leaders)
    for n in range(20):
        mock.create(f"many.{n:02}", leaders * 20)
    few = requests_of(mock, {"few": 3})
    many = requests_of(mock, {f"many.{n:02}": 60 for n in range(20)})
    groups = 3
    assert few == {
        "Metadata of all topics": 1,
        "DescribeConfigs": 1,
        "ListGroups": 1,
        "OffsetFetchRequest": groups,
        "ListOffsetsRequest": 2 * BROKERS,
    }
    assert many == few


def test_a_known_retention_stays_while_the_controller_is_away(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Taken as unlimited, it would be no deadline: workers would leave a topic whose records are soon deleted.

    All topics together wait once, and there is one warning.
    """
    for name in ("a", "b", "other"):
        mock.create(name, [1])
    lag = KafkaLag({"bootstrap.servers": mock.bootstrap_servers})
    admin: Any = Admin(lag._admin, Counter())
    lag._admin = admin
    monkeypatch.setattr(kafka_lag, "_ANSWER_S", 10.0)
    assert lag.topics(["other"], None)["other"].retention_s == 3600
    assert {one.retention_s for one in lag.topics(["a"], None).values()} == {3600}
    monkeypatch.setattr(admin, "describe_configs", lambda some: {one: Future[Any]() for one in some})
    monkeypatch.setattr(kafka_lag, "_ANSWER_S", 1.0)
    capsys.readouterr()
    began = time.monotonic()
    found = lag.topics(["a", "b"], None)
    assert time.monotonic() - began < 3 * 1.0
    assert {name: one.retention_s for name, one in found.items()} == {"a": 3600, "b": None}
    assert capsys.readouterr().out.count("retention cannot be asked for") <= 1
    assert lag.topics(["other"], None)["other"].retention_s == 3600


class Lane:
    """The offsets of a group, whose coordinator a test silences."""

    def __init__(self, commits: Mapping[tuple[str, int], int]) -> None:
        self.commits, self.silent = dict(commits), False

    def committed(self, _keys: object, timeout_s: float) -> dict[tuple[str, int], int]:
        """Answer, or not."""
        assert timeout_s > 0
        if self.silent:
            raise MembershipError("no answer")
        return self.commits

    def ends(self, keys: Sequence[tuple[str, int]], _timeout_s: float) -> dict[tuple[str, int], int]:
        """Of all logs."""
        return dict.fromkeys(keys, 9)

    beginnings = ends


class Brokers:
    """Name the groups of which a broker is the coordinator; a broker that is away names none."""

    def __init__(self, groups: Sequence[str]) -> None:
        self.groups, self.away = list(groups), list[str]()

    def list_consumer_groups(self, request_timeout: float) -> Answer:
        """As librdkafka: what some brokers say, and the errors of the others."""
        assert request_timeout
        named = [SimpleNamespace(group_id=one) for one in self.groups if one not in self.away]
        return Answer(SimpleNamespace(valid=named, errors=["no answer"] * bool(self.away)))


def commits_of(lag: KafkaLag) -> dict[str, int]:
    """The commits of one look, by topic."""
    facts = {name: TopicFacts(partitions=1, retention_s=None) for name in ("a", "b", "new")}
    return {name: int(one.committed[0]) for name, one in lag.observe("g", facts).items()}


def lag_of_two_lanes(brokers: Brokers) -> tuple[KafkaLag, Lane]:
    """Topic a is committed in the first lane, topic b in the second one, which is returned."""
    lag, other = KafkaLag({"bootstrap.servers": "127.0.0.1:1"}), Lane({("b", 0): 6})
    asked: Any = brokers
    lag._admin = asked
    logs: dict[str, Any] = {"g": Lane({}), "g.lane-0": Lane({("a", 0): 5}), "g.lane-1": other}
    lag._logs = logs
    return lag, other


def test_a_lane_whose_coordinator_is_silent_makes_its_own_commits_unknown() -> None:
    """Of one broker of three: the lag of all topics of the fleet would be unknown, and none would be scaled."""
    lag, other = lag_of_two_lanes(Brokers(["g.lane-0", "g.lane-1"]))
    assert commits_of(lag) == {"a": 5, "b": 6, "new": NEVER}
    other.silent = True
    assert commits_of(lag) == {"a": 5, "b": UNKNOWN, "new": UNKNOWN}, "the lane may have a first commit of a new topic"
    other.silent, other.commits = False, {("b", 0): 7}
    assert commits_of(lag) == {"a": 5, "b": 7, "new": NEVER}


def test_lanes_that_cannot_be_asked_do_not_keep_a_round_for_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if kafka-python could not connect although librdkafka can: with its half minute for each lane."""
    lag, _ = lag_of_two_lanes(Brokers([f"g.lane-{n}" for n in range(8)]))
    lag._logs, passed_s = {}, list[float]()

    def connect(settings: Mapping[str, Any]) -> LogOffsets:
        passed_s.append(settings.get("bootstrap_timeout_ms", 30_000) / 1000)
        raise MembershipError("no broker answers")

    monkeypatch.setattr(LogOffsets, "connect", connect)
    monkeypatch.setattr(kafka_lag, "time", SimpleNamespace(monotonic=lambda: sum(passed_s), time=time.time))
    assert set(commits_of(lag).values()) == {UNKNOWN}
    assert len(passed_s) == 10
    assert sum(passed_s) < 30


def test_a_lane_that_a_silent_broker_does_not_name_is_no_lane_without_commits() -> None:
    """Else its topics would count as never committed: all that is kept of them would be their lag."""
    brokers = Brokers(["g.lane-0", "g.lane-1"])
    lag, other = lag_of_two_lanes(brokers)
    commits_of(lag)
    brokers.away = ["g.lane-1"]
    other.commits = {("b", 0): 8}
    assert commits_of(lag) == {"a": 5, "b": 8, "new": UNKNOWN}, "it may answer although the list does not name it"
    new, _ = lag_of_two_lanes(brokers)
    assert commits_of(new)["b"] == UNKNOWN, "no earlier list names it"
