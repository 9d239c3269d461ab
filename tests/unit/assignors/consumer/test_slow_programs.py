"""A program that takes its time for each record hears from its client all the same."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, Message, Producer

from assignors import GroupConsumer
from assignors.consumer import record_steps
from producer.testing import MockCluster
from tests.records import offsets, read
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import SHORT, Bench, at
from tests.waiting import wait_until

pytestmark = pytest.mark.long

MORE = 600


@pytest.mark.parametrize("most", [1, 2], ids=["poll", "consume"])
@pytest.mark.parametrize("protocol", ["classic", "consumer", None], ids=["classic", "consumer", "by hand"])
def test_callbacks_come_between_records_read_ahead(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch, protocol: str | None, most: int
) -> None:
    """Hundreds of records are: at one a second, a report, a log line or an error came many minutes late."""
    monkeypatch.setattr(record_steps, "_READ_AHEAD_BATCHES", 1_000)  # this program is not slow, so it needs more
    producer = Producer({"bootstrap.servers": mock.bootstrap_servers, "log_level": 0})
    for number in range(3 * MORE):
        producer.produce("t", b"v", partition=number % 3)
    assert producer.flush(20) == 0
    reports: list[str] = []
    found: list[Message] = []
    bench = Bench(mock, GroupConsumer, protocol or "classic")
    one = bench.make(**SHORT, **{"statistics.interval.ms": 100}, stats_cb=reports.append)

    def take() -> list[Message]:
        found.extend(one.consume(most, 0.1) if most > 1 else [m for m in [one.poll(0.1)] if m is not None])
        return found

    if protocol is None:
        one.assign([at(partition, OFFSET_BEGINNING) for partition in range(3)])
    else:
        one.subscribe(["t"])
    wait_until(lambda: take() and one._kafka_azimuth.fetching.ahead.left() > 400 * most, 20)
    reports.clear()
    last = len(found) + one._kafka_azimuth.fetching.ahead.left()
    wait_until(lambda: take() and reports, 20)
    assert len(found) < last, "the client was asked while there were records ahead"
    found += read(one, 3 * (RECORDS + MORE) - len(found))
    assert offsets(found) == {partition: list(range(RECORDS + MORE)) for partition in range(3)}
    bench.close()
