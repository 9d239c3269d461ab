"""What the tasks of a query received, noted for other processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from assignors.clients import Received
from producer.testing import MockCluster
from spark_sink import QueryTraffic
from spark_sink.fetch.range_reader import fetch
from spark_sink.fetch.received_files import ReceivedFile, read_received
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import Range

RECORDS, SIZE = 30, 100


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """A topic with records, led in three zones."""
    with MockCluster() as made:
        made.create("t", [1, 2, 3])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers, "log_level": 0})
        for number in range(3 * RECORDS):
            producer.produce("t", b"v" * SIZE, b"k", partition=number % 3)
        assert producer.flush(20) == 0
        yield made


def kafka(mock: MockCluster) -> dict[str, str]:
    """Properties as the source passes them: librdkafka ends the process without a group's name."""
    return {"bootstrap.servers": mock.bootstrap_servers, "group.id": "none"}


def test_tasks_note_what_they_received_by_the_broker_that_sent_it(mock: MockCluster, tmp_path: Path) -> None:
    """Of two tasks of one process, keys and values; the folder is read with the zones of the brokers."""
    settings = FetchSettings(kafka=kafka(mock), traffic=str(tmp_path))
    for ranges in ([Range("t", 0, 0, RECORDS), Range("t", 1, 0, RECORDS)], [Range("t", 2, 0, RECORDS)]):
        rows = sum(batch.num_rows for batch in fetch(ranges, settings, keep=False))
        assert rows == len(ranges) * RECORDS
    each = Received(RECORDS, RECORDS * (SIZE + 1))
    assert read_received(tmp_path) == {("t", 1): each, ("t", 2): each, ("t", 3): each}
    found = QueryTraffic(tmp_path, {"bootstrap.servers": mock.bootstrap_servers, "client.rack": "az-b"}).read()
    assert found.topics == {("t", "az-a"): each, ("t", "az-b"): each, ("t", "az-c"): each}
    assert (found.local, found.cross.records) == (each, 2 * RECORDS)


def test_files_of_all_processes_are_added_up(tmp_path: Path) -> None:
    """Each process has its own; a file that a full disk cut off is left out."""
    one, other = ReceivedFile(tmp_path), ReceivedFile(tmp_path)
    one.add({("t", 1): Received(1, 10), ("u", 2): Received(5, 50)})
    one.add({("t", 1): Received(2, 20)})
    other.add({("t", 1): Received(4, 40)})
    (tmp_path / "cut.received.json").write_text('[["t", 1,', encoding="utf-8")
    assert read_received(tmp_path) == {("t", 1): (7, 70), ("u", 2): (5, 50)}


def test_a_folder_that_is_not_there_ends_no_task(mock: MockCluster, tmp_path: Path) -> None:
    """A task on another machine does not see it: its figures are missing, its records are not."""
    settings = FetchSettings(kafka=kafka(mock), traffic=str(tmp_path / "away"))
    batches = list(fetch([Range("t", 0, 0, RECORDS)], settings, keep=False))
    assert sum(batch.num_rows for batch in batches) == RECORDS
    assert read_received(tmp_path / "away") == {}
