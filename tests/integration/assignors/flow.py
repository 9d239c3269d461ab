"""Records that come while a test runs."""

import threading
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from tests.counted_records import SETTINGS
from tests.integration.assignors.conftest import Topics
from tests.integration.assignors.members import Process, deliveries
from tests.waiting import wait_until

TOPICS, PARTITIONS = 6, 4


class Flow:
    """Records that come while a test runs, a few hundred a second."""

    def __init__(self, topics: Topics, replication: int = 3) -> None:
        names = [f"t{n}" for n in range(TOPICS)]
        self.names = topics.make(*names, partitions=PARTITIONS, replication=replication)
        self._servers = topics.bootstrap_servers
        self._producer = Producer({"bootstrap.servers": self._servers, **SETTINGS})
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flow")
        self.written: set[tuple[str, int, int]] = set()
        self._thread.start()

    def end(self) -> None:
        """Write no more; what the logs hold is known then.

        The logs say it, not the reports of the producer, which may lack an offset.
        """
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        reader = Consumer({"bootstrap.servers": self._servers, "group.id": "flow", "log_level": 0})
        try:
            for name in self.names:
                for partition in range(PARTITIONS):
                    low, high = reader.get_watermark_offsets(KafkaPartition(name, partition), timeout=30)
                    self.written |= {(name, partition, offset) for offset in range(low, high)}
        finally:
            reader.close()

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            for name in self.names:
                for partition in range(PARTITIONS):
                    self._producer.produce(name, b"x" * 100, partition=partition, on_delivery=_note)
            self._producer.poll(0)


def _note(error: object, _message: object) -> None:
    assert error is None


def wait_until_all_read(flow: Flow, processes: list[Process], timeout_s: float) -> None:
    """Wait until each record that was written was delivered; the failure names the records that were not."""

    def missing() -> set[tuple[str, int, int]]:
        return flow.written - deliveries(processes).keys()

    def told() -> str:
        keys = sorted({(topic, partition) for topic, partition, _ in missing()})
        failed = [f"{one.name}: {one.errors()[-1000:]}" for one in processes if "Traceback" in one.errors()]
        return "\n".join(["delivery of these records:", str(sorted(missing()))[:2000], *map(_story, keys), *failed])

    def _story(key: tuple[str, int]) -> str:
        lines = [(line["at"], one.name, line["event"], _part(line, key)) for one in processes for line in one.lines()]
        return "\n".join(f"  {at:.3f} {name} {event} {part}" for at, name, event, part in sorted(lines) if part)

    wait_until(lambda: not missing(), timeout_s, told)


def _part(line: dict[str, Any], key: tuple[str, int]) -> str:
    """What a line says of one partition: the offsets it delivered, or that it names the partition."""
    if line["event"] == "records":
        return "".join(f"{key} {min(offsets)}-{max(offsets)}" for *at, offsets in line["spans"] if tuple(at) == key)
    if line["event"] in {"errors", "closed"}:
        return str(line.get("errors", "the process"))
    return str(key) if list(key) in line["partitions"] else ""
