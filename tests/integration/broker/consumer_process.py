"""One confluent-kafka consumer as a process, until SIGTERM."""

import json
import signal
import sys
import threading
from typing import Any

from confluent_kafka import Consumer


def main(config: dict[str, Any], pattern: str) -> None:
    """Read, and leave the group at the end."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    consumer = Consumer(config)
    consumer.subscribe([pattern])
    while not ended.is_set():
        consumer.poll(0.1)
    consumer.close()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
