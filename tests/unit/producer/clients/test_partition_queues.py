"""Queues in librdkafka's statistics, as weights of partitions."""

from typing import Any

import pytest

from producer import AZAwareProducer
from producer.clients.client_statistics import queues
from producer.decisions.sticky import queue_weights
from producer.testing import MockCluster
from tests.unit.producer.deliveries import TOPIC, Deliveries, config
from tests.waiting import wait_until

pytestmark = pytest.mark.long

NOTHING_SENT = {"msgs_inflight": 0, "txmsgs": 0, "txbytes": 0}


@pytest.mark.parametrize(
    "more", [{}, {"enable.idempotence": True}, {"max.in.flight": 1}], ids=["default", "idempotence", "one in flight"]
)
def test_a_slow_leader_gets_less(more: dict[str, Any]) -> None:
    """Two leaders in the zone, one answers late: its records without an answer lower its weight (KIP-794).

    By default librdkafka sends all that waits at once, so that what the slow leader lacks is in flight to it.
    """
    with MockCluster(("az-a", "az-a")) as slow:
        slow.create(TOPIC, [1, 2])
        seen = Deliveries()
        settings = config(slow, **{"statistics.interval.ms": 20, **more})
        producer = AZAwareProducer(settings, batch_bytes=1_000)
        producer.produce(TOPIC, b"v", on_delivery=seen)
        assert producer.flush(10) == 0
        slow.delay(2, 300)
        sent = 0

        def send() -> bool:
            nonlocal sent
            for _ in range(100):
                producer.produce(TOPIC, b"v" * 100, on_delivery=seen)
            producer.poll(0.005)
            sent += 100
            return sent >= 20_000

        wait_until(send, 30)
        assert producer.flush(20) == 0
        assert seen.partitions[1] < 0.35 * sent
        assert producer.traffic().local.records == sent + 1
        producer.close()


def test_what_waits_for_a_dead_broker_weighs_the_most() -> None:
    """Bytes for a broker without a connection keep new records away; idle partitions are no queue."""
    partition = {"msgq_bytes": 10, "xmit_msgq_bytes": 5, **NOTHING_SENT, "leader": 1}
    report = {
        "0": partition,
        "1": {**partition, "leader": 2},
        "2": {**partition, "msgq_bytes": 0, "xmit_msgq_bytes": 0},
    }
    found = queues({**report, "-1": partition}, {2})
    assert found[0] == 15
    assert found[1] > 10**15
    assert set(found) == {0, 1}


def test_a_report_of_short_queues_leaves_no_partition_out() -> None:
    """Under a batch is no queue, and one batch more halves a share: a report is seconds old when it is used."""
    report = {
        f"{n}": {"msgq_bytes": size, "xmit_msgq_bytes": 0, **NOTHING_SENT, "leader": 1}
        for n, size in enumerate((900, 0, 99))
    }
    assert queues(report, batch_bytes=1_000) == {}
    report["0"]["msgq_bytes"] = 1_900
    assert queues(report, batch_bytes=1_000) == {0: 1}
    assert queue_weights((0, 1, 2), queues(report, batch_bytes=1_000)) == (1, 3, 5)


def test_records_in_flight_count_with_their_average_size() -> None:
    """A leader that answers late has its records in flight, not in the client's queue."""
    sent = {"msgs_inflight": 30, "txmsgs": 100, "txbytes": 10_000}
    report = {
        "0": {"msgq_bytes": 500, "xmit_msgq_bytes": 500, **sent, "leader": 1},
        "1": {"msgq_bytes": 0, "xmit_msgq_bytes": 0, **sent, "leader": 2},
    }
    assert queues(report, batch_bytes=1_000) == {0: 4, 1: 3}
    assert queues(report, {2}, batch_bytes=1_000)[1] > 10**15
