"""Topics without fixed leaders (diskless, KIP-1150), and topics without any leader, on librdkafka's mock cluster."""

import pytest

from producer import AZAwareProducer, Reason
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("hot")


@pytest.mark.parametrize("keys", ["global", "local-hrw"])
def test_a_diskless_topic_is_local_in_each_zone_by_the_leaders_that_brokers_report(
    mock: MockCluster, keys: str
) -> None:
    """All partitions are candidates, so `global` keys are local, too, and a key has one partition from every zone."""
    places = set()
    for broker, zone in mock.racks.items():
        mock.create(f"{TOPIC}.{zone}", [broker] * 6)  # what the brokers report to the clients of this zone
        seen = Deliveries()
        producer = AZAwareProducer(config(mock, **{"client.rack": zone}), keys=keys)
        for _ in range(5):
            producer.produce(f"{TOPIC}.{zone}", b"v", b"key", on_delivery=seen)
        producer.produce(f"{TOPIC}.{zone}", b"v")
        assert producer.flush(10) == 0
        assert producer.traffic().local.records == 6
        places.add(tuple(seen.partitions))
        producer.close()
    assert len(places) == 1


def test_a_diskless_topic_whose_reported_brokers_fail_goes_on_elsewhere_and_returns(mock: MockCluster) -> None:
    """The brokers report others at once, without an election; the producer follows the reports."""
    mock.create(TOPIC, [1] * 6)
    producer = AZAwareProducer(config(mock, **{"statistics.interval.ms": 100}), hold_s=0.0)
    producer.produce(TOPIC, b"v")
    assert producer.flush(10) == 0
    partitioners = producer._kafka_azimuth.topics_in_use.partitioners
    for broker, reason in ((2, Reason.NO_LOCAL_LEADER), (1, Reason.LOCAL)):
        mock.lead(TOPIC, [broker] * 6)
        producer.refresh_leaders()
        wait_until(lambda reason=reason: partitioners[TOPIC].locality.reason is reason)  # type: ignore[misc]  # bound at once
        producer.produce(TOPIC, b"v")
        assert producer.flush(10) == 0
    traffic = producer.traffic()
    assert (traffic.local.records, traffic.cross.records) == (2, 1)
    producer.close()


def test_records_of_a_topic_without_leaders_wait_for_them(mock: MockCluster) -> None:
    """All partitions are candidates, the reason is counted, and the records are sent when the first leader appears."""
    mock.create(TOPIC, [None] * 3)
    seen = Deliveries()
    producer = AZAwareProducer(config(mock), hold_s=0.0, count="queued")
    producer.produce(TOPIC, b"v", on_delivery=seen)
    assert producer.traffic().reasons[Reason.NO_LEADER].records == 1
    mock.lead(TOPIC, [1, 1, 1])
    assert producer.flush(30) == 0
    assert seen.partitions.total() == 1
    assert not seen.errors
    producer.close()
