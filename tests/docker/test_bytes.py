"""Bytes between zones, from the containers' network counters instead of our own accounting."""

import os
import sys
import time

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from producer import AZAwareProducer
from spark_sink.demo.topics import _await_leaders
from tests.docker.zones import RACKS, Zones

pytestmark = pytest.mark.docker

VALUE = os.urandom(1 << 14)  # nothing to compress
RECORDS = 3_000
CLOSE = 0.05


def _send(zones: Zones, topic: str, *, aware: bool) -> tuple[dict[str, int], dict[str, int]]:
    """Produce 49 MB from az-a; bytes that each broker's interface received, and those that the client says it sent."""
    config = {
        "bootstrap.servers": zones.bootstrap_servers,
        "client.rack": "az-a",
        "statistics.interval.ms": 200,
        "linger.ms": 20,
    }
    before = zones.received_bytes()
    with AZAwareProducer(config, aware=aware) as producer:
        for number in range(RECORDS):
            # Without a key, records prefer quick leaders: an even spread over the zones needs keys.
            producer.produce(topic, VALUE, None if aware else str(number))
            producer.poll(0)
        assert producer.flush(60) == 0
        sent: dict[str, int] = {}
        while sum(sent.values()) < RECORDS * len(VALUE):  # until the statistics have seen the end
            producer.poll(0.1)
            sent = dict(producer.traffic().wire_bytes)
    after = zones.received_bytes()
    return {rack: after[rack] - before[rack] for rack in RACKS}, sent


@pytest.fixture
def topic(zones: Zones) -> str:
    """12 partitions without replicas, so that a broker receives only bytes from producers.

    Each broker has four: if brokers chose, one could have six, and the share of other zones would not be two thirds.
    """
    name = f"bytes.{time.time_ns()}"
    brokers = [[number % 3 + 1] for number in range(12)]
    wanted = NewTopic(name, num_partitions=len(brokers), replica_assignment=brokers)
    admin = AdminClient({"bootstrap.servers": zones.bootstrap_servers})
    admin.create_topics([wanted])[name].result(60)
    _await_leaders(zones.bootstrap_servers.split(","), {name})
    return name


def test_an_aware_producer_sends_nothing_to_other_zones(zones: Zones, topic: str) -> None:
    """Other zones' interfaces see less than 1 % of the bytes; the producer's zone agrees with our count within 5 %."""
    received, sent = _send(zones, topic, aware=True)
    sys.stdout.write(f"aware: interfaces {received}, client {sent}\n")
    assert sent["az-a"] == pytest.approx(received["az-a"], rel=CLOSE)
    assert received["az-b"] + received["az-c"] < 0.01 * received["az-a"]


def test_a_producer_that_is_not_aware_sends_two_thirds_to_other_zones(zones: Zones, topic: str) -> None:
    """Both accounts agree zone by zone within 5 %."""
    received, sent = _send(zones, topic, aware=False)
    sys.stdout.write(f"not aware: interfaces {received}, client {sent}\n")
    for rack in RACKS:
        assert sent[rack] == pytest.approx(received[rack], rel=CLOSE)
    assert 0.55 < 1 - received["az-a"] / sum(received.values()) < 0.8
