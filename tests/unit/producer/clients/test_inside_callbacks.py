"""First records of a topic that are sent inside a callback of the client, such as those of a dead-letter topic."""

import subprocess
import sys
import time
from pathlib import Path
from threading import current_thread

import pytest
from confluent_kafka import KafkaError, Message

from producer import AZAwareProducer
from producer.clients.call_apart import call_apart
from producer.testing import MockCluster
from tests.waiting import wait_until

ROOT = Path(__file__).parents[4]
RECORDS = 5


class Resending:
    """A producer whose callbacks send records to a second topic."""

    def __init__(self, mock: MockCluster, way: str) -> None:
        self.way = way
        self.delivered: list[str] = []
        settings = {"client.rack": "az-a", "linger.ms": 20, "log_level": 0, "statistics.interval.ms": 20}
        settings |= {"bootstrap.servers": mock.bootstrap_servers}
        self.producer = AZAwareProducer({**settings, "stats_cb": self.on_statistics})

    def note(self, _: KafkaError | None, record: Message) -> None:
        """Note a delivered record's topic."""
        self.delivered.append(record.topic() or "")

    def resend(self) -> None:
        """Send one record to the second topic."""
        if self.way == "batch":
            self.producer.produce_batch("dead-letters", [{"value": b"v"}], on_delivery=self.note)
        else:
            self.producer.produce("dead-letters", b"v", on_delivery=self.note)

    def on_statistics(self, _: str) -> None:
        """Send a record; meanwhile librdkafka queues the next report, so that one `poll` runs two callbacks."""
        if self.way == "statistics" and len(self.delivered) < RECORDS:
            time.sleep(0.05)
            self.resend()

    def on_delivery(self, error: KafkaError | None, record: Message) -> None:
        """Send a record for each one of the first topic."""
        self.note(error, record)
        self.resend()


def send_again(mock: MockCluster, way: str) -> str:
    """Send records of one topic whose callbacks send as many to another; return what was delivered."""
    mock.create("flights", [1, 2, 3])
    mock.create("dead-letters", [1, 2, 3])
    sender = Resending(mock, way)
    producer, delivered = sender.producer, sender.delivered
    for _ in range(RECORDS if way != "statistics" else 0):
        producer.produce("flights", b"v", on_delivery=sender.on_delivery)

    def is_done() -> bool:
        producer.poll(0.05)
        return delivered.count("dead-letters") >= RECORDS

    wait_until(is_done)
    producer.flush(5)
    local = producer.traffic().local.records == len(delivered)
    producer.close()
    return f"{sorted(set(delivered))} {local}"


def main(way: str) -> None:
    """Run in a fresh process, because a wrong call in a callback aborts the process."""
    with MockCluster() as mock:
        sys.stdout.write(send_again(mock, way))


@pytest.mark.parametrize(
    ("way", "topics"),
    [
        ("produce", "['dead-letters', 'flights']"),
        ("batch", "['dead-letters', 'flights']"),
        ("statistics", "['dead-letters']"),
    ],
)
def test_the_first_record_of_a_topic_may_be_sent_in_a_callback(way: str, topics: str) -> None:
    """All records are delivered in their zone, as if the application had sent them outside of the callback."""
    code = f"from tests.unit.producer.clients.test_inside_callbacks import main; main({way!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == (0, f"{topics} True"), done.stderr[-2000:]


def test_a_call_apart_returns_and_raises_as_the_function_does() -> None:
    """The function runs in another thread, and its error reaches the caller unchanged."""
    assert call_apart(current_thread) is not current_thread()

    def fail() -> None:
        raise LookupError("no topic")

    with pytest.raises(LookupError, match="no topic"):
        call_apart(fail)


def test_a_call_apart_needs_no_thread_at_the_interpreters_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that starts while the interpreter ends never runs, or is refused."""
    monkeypatch.setattr("producer.clients.call_apart.sys.is_finalizing", lambda: True)
    assert call_apart(current_thread) is current_thread()
    monkeypatch.undo()

    def refuse(_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr("threading.Thread.start", refuse)
    assert call_apart(current_thread) is current_thread()
