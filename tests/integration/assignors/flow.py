"""Records that come while a test runs."""

import threading

from confluent_kafka import Producer

from tests.integration.assignors.conftest import Topics

TOPICS, PARTITIONS = 6, 4


class Flow:
    """Records that come while a test runs, a few hundred a second."""

    def __init__(self, topics: Topics, replication: int = 3) -> None:
        names = [f"t{n}" for n in range(TOPICS)]
        self.names = topics.make(*names, partitions=PARTITIONS, replication=replication)
        self._producer = Producer(
            {"bootstrap.servers": topics.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        )
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flow")
        self.written: set[tuple[str, int, int]] = set()
        self._thread.start()

    def end(self) -> None:
        """Write no more; what was written is known then."""
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            for name in self.names:
                for partition in range(PARTITIONS):
                    self._producer.produce(name, b"x" * 100, partition=partition, on_delivery=self._note)
            self._producer.poll(0)

    def _note(self, error: object, message: object) -> None:
        assert error is None
        one: tuple[str, int, int] = (message.topic(), message.partition(), message.offset())  # type: ignore[attr-defined]  # confluent-kafka's message
        self.written.add(one)
