"""One GroupConsumer that copies records in transactions: reads, writes and commits its offsets atomically.

While the file `hold` exists, it waits inside an open transaction, after it has written the records. It runs until
SIGTERM, and writes its events as lines of JSON.
"""

import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Message, Producer

from assignors import GroupConsumer, HRWAssignor


def say(event: str, partitions: list[tuple[str, int]], **more: object) -> None:
    """Write a line."""
    print(json.dumps({"at": time.monotonic(), "event": event, "partitions": partitions, **more}), flush=True)  # noqa: T201 - its output


def copied(producer: Producer, output: str, messages: list[Message]) -> None:
    """Write one record for each, named by the source's topic, partition and offset."""
    for one in messages:
        producer.produce(output, json.dumps([one.topic(), one.partition(), one.offset()]).encode())


def go_back(consumer: GroupConsumer) -> None:
    """Read again from the committed offsets, since the transaction is aborted."""
    for one in consumer.committed(consumer.assignment(), timeout=20):
        one.offset = max(one.offset, 0)
        consumer.seek(one)


def main(settings: dict[str, Any]) -> None:
    """Run one consumer and its producer."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    hold = Path(settings["hold"])
    producer = Producer(settings["producer"])
    producer.init_transactions(60)
    config = settings["config"]
    classic = config.get("group.protocol") != "consumer"
    assignors = [HRWAssignor(agent=settings["agent"], cooperative=True)] if classic else None
    consumer = GroupConsumer(config, assignors=assignors)
    seen = -1
    with consumer:
        consumer.subscribe([settings["pattern"]])
        while not ended.is_set():
            messages = [one for one in consumer.consume(100, 0.1) if one.error() is None]
            now = consumer.ownership()
            if now.joined and now.version != seen:
                seen = now.version
                say("owns", sorted(now.partitions), generation=now.generation)
            if not messages:
                continue
            metadata = consumer.consumer_group_metadata()
            producer.begin_transaction()
            copied(producer, settings["output"], messages)
            while hold.exists() and not ended.is_set():
                say("holds", [], records=len(messages))
                time.sleep(0.05)
            try:
                producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), metadata, 30)
                producer.commit_transaction(30)
                say("copied", [], records=len(messages))
            except KafkaException as error:
                say("refused", [], reason=error.args[0].name(), fatal=error.args[0].fatal())
                producer.abort_transaction(30)
                go_back(consumer)
    say("closed", [])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
