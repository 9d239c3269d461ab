"""Leaders and racks read through confluent-kafka, and the credentials of these requests."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from producer import AZAwareAIOProducer, AZAwareProducer, MetadataError, TrafficMeter, metadata_requests
from producer.decisions.candidate_partitions_in_zone import Replicas
from producer.metadata_requests import read_leaders_of
from producer.testing import MockCluster
from tests.unit.producer.deliveries import config

UNKNOWN_TOPIC = 3


def answer(leaders: dict[int, int | None]) -> SimpleNamespace:
    """Describe a topic as confluent-kafka does: replicas on the leader, or on broker 1."""
    nodes = {number: SimpleNamespace(id=number) for number in (-1, 1, 2, 3)}
    partitions = [
        SimpleNamespace(id=number, leader=None if led is None else nodes[led], replicas=[nodes[max(led or 1, 1)]])
        for number, led in leaders.items()
    ]
    return SimpleNamespace(partitions=partitions)


def test_partition_ids_may_have_gaps_where_topics_are_read_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker in the middle of a deletion leaves partitions out; leaders after a gap moved to the wrong partition."""
    found: dict[str, Any] = {
        "gaps": answer({1: 2, 4: 1}),
        "unordered": answer({2: 3, 0: 1, 1: None}),
        "leaderless": answer({0: -1, 1: -1}),
        "empty": answer({}),
        "missing": KafkaException(KafkaError(UNKNOWN_TOPIC)),
    }

    class Admin:
        def __init__(self, _config: object) -> None:
            pass

        def describe_topics(self, asked: Any, **_: object) -> dict[str, "Future[object]"]:
            answers: dict[str, Future[object]] = {name: Future() for name in asked.topic_names}
            for name, one in answers.items():
                if isinstance(found[name], Exception):
                    one.set_exception(found[name])
                else:
                    one.set_result(found[name])
            return answers

    monkeypatch.setattr(metadata_requests, "AdminClient", Admin)
    replicas: dict[str, Replicas] = {}
    assert read_leaders_of({}, list(found), 1.0, replicas) == {
        "gaps": (None, 2, None, None, 1),
        "unordered": (1, None, 3),
        "leaderless": (None, None),
    }
    assert replicas == {
        "gaps": ((), (2,), (), (), (1,)),
        "unordered": ((1,), (1,), (3,)),
        "leaderless": ((1,), (1,)),
    }


def test_topics_read_by_name_have_the_leaders_that_the_cluster_reports(mock: MockCluster) -> None:
    """Over a real socket: partitions without a leader keep their places, and a missing topic is left out."""
    mock.create("led", [3, None, 1])
    mock.create("leaderless", [None, None])
    mock.refuse("refused", UNKNOWN_TOPIC)
    found = read_leaders_of({"bootstrap.servers": mock.bootstrap_servers}, ["led", "leaderless", "refused"], 10.0)
    assert found == {"led": (3, None, 1), "leaderless": (None, None)}


@pytest.mark.parametrize("way", ["producer", "asyncio", "meter"])
def test_new_credentials_reach_each_request_for_racks_and_leaders(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """These requests use a client of their own, and went on with the old password."""
    used: list[tuple[str, str]] = []

    class Admin:
        def __init__(self, settings: dict[str, str]) -> None:
            used.append((settings["sasl.username"], settings["sasl.password"]))
            raise KafkaException(KafkaError(KafkaError._AUTHENTICATION))

    monkeypatch.setattr(metadata_requests, "AdminClient", Admin)
    settings = config(mock, **{"sasl.username": "old", "sasl.password": "old", "sasl.mechanism": "PLAIN"})

    def ask(one: Any) -> None:
        topology = (
            vars(one)["_TrafficMeter__topology"] if isinstance(one, TrafficMeter) else one._kafka_azimuth.topology
        )
        with pytest.raises(MetadataError):
            topology.read_racks(0.1)
        with pytest.raises(MetadataError):
            topology.leaders_of(["flights"], 0.1)

    async def run() -> None:
        async with AZAwareAIOProducer(settings) as producer:
            ask(producer)
            await producer.set_sasl_credentials("new", "newer")
            ask(producer)

    if way == "asyncio":
        asyncio.run(run())
    else:
        one: Any = AZAwareProducer(settings) if way == "producer" else TrafficMeter(settings)
        ask(one)
        one.set_sasl_credentials("new", "newer")
        ask(one)
        if way == "producer":
            one.close()
    assert used == [("old", "old")] * 2 + [("new", "newer")] * 2


def test_a_second_handle_makes_its_own_tokens_where_the_producer_does() -> None:
    """Without this property it has no token, so no rack was read and every record could leave its zone."""
    tokens = {"sasl.mechanism": "OAUTHBEARER", "enable.sasl.oauthbearer.unsecure.jwt": True}
    assert metadata_requests.connection({**tokens, "linger.ms": 5}) == tokens
