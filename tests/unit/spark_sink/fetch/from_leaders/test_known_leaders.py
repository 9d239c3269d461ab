"""What a task leaves to the next one: connections, and what the brokers at their ends have said of themselves."""

import os
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

pytest.importorskip("spark_sink.fetch.from_leaders.batch_decoder_compiled", reason="needs a C compiler at the build")

from producer.testing import MockCluster
from spark_sink.errors import DataLossError, FetchError
from spark_sink.fetch import range_reader
from spark_sink.fetch.from_leaders import known_leaders, leader_fetching, task_broker
from spark_sink.fetch.from_leaders.leader_connection import LeaderConnection
from spark_sink.fetch.librdkafka import NativeConsumer
from spark_sink.fetch.range_reader import fetch
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import Range
from tests.unit.spark_sink.fetch.from_leaders.one_failure import OneFailure

pytestmark = pytest.mark.long

RECORDS = 60
TOPICS = ("a", "b")
ALL = [Range(topic, partition, 0, RECORDS) for topic in TOPICS for partition in range(3)]
Rows = list[tuple[str, int, int]]
EVERYTHING = sorted((one.topic, one.partition, at) for one in ALL for at in range(RECORDS))


BY_NAME, BY_ID = "by name", "by id"


@pytest.fixture(params=[BY_NAME, BY_ID])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How tasks name topics to brokers: by name to those before 3.1."""
    if request.param == BY_NAME:
        monkeypatch.setattr(task_broker, "parse_versions", lambda _: False)
    found: str = request.param
    return found


@pytest.fixture
def mock(way: str) -> Iterator[MockCluster]:  # noqa: ARG001 -- for all tests
    """Three brokers, and two topics of three partitions; nothing is left of other tests."""
    forget()
    with MockCluster() as cluster:
        for topic in TOPICS:
            cluster.create(topic, [1, 2, 3])
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        for topic, partition, at in EVERYTHING:
            producer.produce(topic, b"%d" % at, partition=partition)
        producer.flush()
        yield cluster
        forget()


def forget() -> None:
    """Close what tasks have left: a client of librdkafka would look for the brokers of a test that has ended."""
    known_leaders._forget()
    while range_reader._idle:
        range_reader._idle.popitem()[1].close()


@pytest.fixture
def ids(mock: MockCluster) -> dict[str, str]:
    """The ids of the topics, as a plan has them."""
    client = NativeConsumer({"bootstrap.servers": mock.bootstrap_servers, "group.id": "g"})
    try:
        return {topic: f"cluster/{identity}" for topic, identity in client.topic_ids(TOPICS, 10).items()}
    finally:
        client.close()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The connects of tasks, and `send` with the key of each request."""
    found: list[str] = []
    connect, send = LeaderConnection.__init__, LeaderConnection.send

    def connecting(one: LeaderConnection, *arguments: Any) -> None:
        found.append("connect")
        connect(one, *arguments)

    def sending(one: LeaderConnection, request: bytes) -> None:
        found.append({1: "fetch", 3: "metadata", 18: "versions"}[int.from_bytes(request[4:6], "big")])
        send(one, request)

    monkeypatch.setattr(LeaderConnection, "__init__", connecting)
    monkeypatch.setattr(LeaderConnection, "send", sending)
    return found


def read(mock: MockCluster, ids: dict[str, str], ranges: list[Range] = ALL) -> Rows:
    """The rows of one task in order."""
    settings = FetchSettings(kafka={"bootstrap.servers": mock.bootstrap_servers, "group.id": "g"}, poll_timeout_s=20)
    table = pa.Table.from_batches(fetch(ranges, settings, ids), arrow_schema(headers=False))
    columns = (table[name].to_pylist() for name in ("topic", "partition", "offset"))
    return sorted(zip(*columns, strict=True))


def test_the_second_task_fetches_at_once(mock: MockCluster, ids: dict[str, str], calls: list[str], way: str) -> None:
    """It connects to no broker. What was read by name each broker is asked for at the end; librdkafka is not needed."""
    assert set(ids) == set(TOPICS)
    assert read(mock, ids) == EVERYTHING
    first = calls.copy()
    assert first.count("connect") == 4  # a bootstrap server and three leaders
    assert first.count("versions") == 3
    calls.clear()
    assert read(mock, ids) == EVERYTHING
    asked = [call for call in calls if call != "fetch"]
    assert asked == calls[-len(asked) :] == ["metadata"] * 3 if way == BY_NAME else not asked
    assert not range_reader._idle


def test_topics_that_are_new_to_a_task_are_asked_for(mock: MockCluster, ids: dict[str, str], calls: list[str]) -> None:
    """What was known of others stays known."""
    read(mock, ids, ALL[:3])
    calls.clear()
    assert read(mock, ids) == EVERYTHING
    assert calls[:2] == ["connect", "metadata"]
    calls.clear()
    assert read(mock, ids, ALL[:3]) == EVERYTHING[: 3 * RECORDS]
    assert calls[0] == "fetch"


@pytest.mark.parametrize("another", [b64encode(bytes(range(16))).decode().rstrip("="), "no-id"])
def test_leaders_of_a_topic_that_was_recreated_are_not_used(
    mock: MockCluster, ids: dict[str, str], calls: list[str], another: str
) -> None:
    """The plan has its new id, and a broker that has not noticed would answer with the old records."""
    read(mock, ids)
    calls.clear()
    with pytest.raises(DataLossError, match=r"a: .* recreated while it was read"):
        read(mock, {**ids, "a": f"cluster/{another}"})
    assert calls[:2] == ["connect", "metadata"]
    assert not known_leaders._kept


@pytest.mark.parametrize("way", [BY_ID], indirect=True)
def test_an_id_that_a_broker_refuses_is_compared_before_librdkafka_reads(
    mock: MockCluster, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads by name, and might wait for records that the new topic does not have."""

    def assign(*_: object) -> None:
        raise AssertionError("librdkafka reads")

    monkeypatch.setattr(NativeConsumer, "assign", assign)
    with pytest.raises(DataLossError, match="recreated"):
        read(mock, {**ids, "a": f"cluster/{b64encode(bytes(range(16))).decode().rstrip('=')}"})


def test_without_ids_in_the_plan_nothing_is_kept(mock: MockCluster, calls: list[str]) -> None:
    """Its leaders would be known from the start of the task, and grow old."""
    read(mock, {})
    calls.clear()
    assert read(mock, {}) == EVERYTHING
    assert calls[:2] == ["connect", "metadata"]


def test_a_leader_that_has_moved_between_two_tasks_is_found(
    mock: MockCluster, ids: dict[str, str], calls: list[str]
) -> None:
    """The former leader refuses, and is asked for the new one; librdkafka is not needed."""
    read(mock, ids)
    mock.lead("a", [2, 3, 1])
    for _ in range(2):
        calls.clear()
        assert read(mock, ids) == EVERYTHING
        assert "connect" not in calls
    assert not range_reader._idle


def test_a_connection_that_the_broker_has_closed_is_not_used(
    mock: MockCluster, ids: dict[str, str], calls: list[str]
) -> None:
    """A broker that restarts; another one may have its address by now, so a bootstrap server is asked for it."""
    read(mock, ids)
    mock.down(2)
    mock.up(2)
    calls.clear()
    assert read(mock, ids) == EVERYTHING
    assert calls[:2] == ["connect", "metadata"]
    assert calls.count("connect") == 2


def test_connections_that_have_rested_for_long_are_not_used(
    mock: MockCluster, ids: dict[str, str], calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some networks drop them without a word, and no answer comes. Each counts alone: other brokers may be busy."""
    read(mock, ids)
    (known,) = known_leaders._kept.values()
    known._connections[2].used_at -= known_leaders._IDLE_S
    calls.clear()
    assert read(mock, ids) == EVERYTHING
    assert calls.count("connect") == 2
    monkeypatch.setattr(known_leaders, "_IDLE_S", -1.0)
    calls.clear()
    assert read(mock, ids) == EVERYTHING
    assert calls.count("connect") == 4


def test_leaders_that_were_learned_long_ago_are_asked_for(
    mock: MockCluster, ids: dict[str, str], calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As other clients do after metadata.max.age.ms."""
    read(mock, ids)
    monkeypatch.setattr(known_leaders, "_KNOWN_S", -1.0)
    calls.clear()
    read(mock, ids)
    assert calls[:2] == ["connect", "metadata"]


@pytest.mark.parametrize("way", [BY_NAME], indirect=True)
def test_the_brokers_that_were_read_say_the_ids(
    mock: MockCluster, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is cut off from the others still names the old id of a topic that was recreated elsewhere."""
    asked: list[int] = []
    send = LeaderConnection.send
    read(mock, ids)
    (known,) = known_leaders._kept.values()
    number_of = {one.address: number for number, one in known._connections.items()}

    def sending(one: LeaderConnection, request: bytes) -> None:
        if request[4:6] == b"\0\3":
            asked.append(number_of[one.address])
        send(one, request)

    monkeypatch.setattr(LeaderConnection, "send", sending)
    assert len(read(mock, ids, [Range("a", 1, 0, RECORDS)])) == RECORDS
    assert asked == [2]


def test_a_kept_connection_without_an_answer_is_given_up_soon(
    mock: MockCluster, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its broker may have been lost without a word; librdkafka reads what is left."""
    read(mock, ids)
    monkeypatch.setattr(leader_fetching, "_KEPT_WAIT_S", 0.05)
    mock.delay(2, 400)
    try:
        assert read(mock, ids) == EVERYTHING
    finally:
        mock.delay(2, 0)
    assert not known_leaders._kept
    assert range_reader._idle


def test_what_is_kept_is_bounded(mock: MockCluster, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics come and go, and so do queries."""
    read(mock, ids)
    (known,) = known_leaders._kept.values()
    monkeypatch.setattr(known_leaders, "_KNOWN_S", -1.0)
    known.rest()
    assert not known._leads
    for number in range(20):
        known_leaders.keep(str(number), known_leaders.KnownLeaders())
    assert len(known_leaders._kept) == known_leaders._MOST_KEPT


def test_a_forked_process_does_not_share_connections(mock: MockCluster, ids: dict[str, str]) -> None:
    """Two processes that read one stream would each get half of the answers."""
    read(mock, ids)
    assert known_leaders._kept
    child = os.fork()
    if not child:
        os._exit(len(known_leaders._kept))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert read(mock, ids) == EVERYTHING


@pytest.mark.parametrize("method", ["__init__", "send", "receive"])
@pytest.mark.parametrize("restarted", [False, True])
def test_no_record_is_lost_or_doubled_whichever_call_of_a_later_task_fails(
    mock: MockCluster, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch, method: str, *, restarted: bool
) -> None:
    """Each connect, request and response of the second task fails once; the third one reads everything, too."""
    one = OneFailure(getattr(LeaderConnection, method))
    while True:
        read(mock, ids)
        if restarted:
            mock.down(1)
            mock.up(1)
        with monkeypatch.context() as patched:
            patched.setattr(LeaderConnection, method, one.method())
            one.calls, one.failing = 0, one.failing + 1
            assert read(mock, ids) == EVERYTHING
        assert read(mock, ids) == EVERYTHING
        if one.calls < one.failing:  # no call was left that could fail
            break
    assert one.failing > (1 if method != "__init__" or restarted else 0)


def test_a_property_that_librdkafka_refuses_ends_a_task_that_does_not_need_it(mock: MockCluster) -> None:
    """Else it would be reported by the first task that cannot read from the leaders."""
    settings = FetchSettings(kafka={"bootstrap.servers": mock.bootstrap_servers, "isolation.level": "some"})
    with pytest.raises(FetchError, match=r"kafka\.isolation\.level"):
        list(fetch(ALL, settings))
