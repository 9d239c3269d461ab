"""A process that reads a topic again and again while it gets SIGINT; prints what was lost or came twice."""

import contextlib
import json
import logging
import signal
import time
from types import FrameType
from typing import Any

from confluent_kafka import Producer, TopicPartition

from assignors import GroupConsumer
from producer.testing import MockCluster

RECORDS = 60
ROUNDS = 5
SIGNALS = 4


class Calls:
    """Counts the calls of callbacks, and the signals whose handler raised.

    Attributes:
        left: how many more signals raise; a call that is interrupted fetches its records again.
    """

    def __init__(self) -> None:
        self.left = 0
        self.called = 0
        self.raised = 0

    def callback(self, *_: object) -> None:
        """Count a call."""
        self.called += 1

    def interrupt(self, _: int, frame: FrameType | None) -> None:
        """Raise within `consume`: records of a call that has returned would be the program's to lose."""
        while frame is not None and self.left:
            if frame.f_code is GroupConsumer.consume.__code__:
                self.raised, self.left = self.raised + 1, self.left - 1
                raise KeyboardInterrupt
            frame = frame.f_back


def main() -> None:
    """Read all records in each round."""
    calls = Calls()
    signal.signal(signal.SIGINT, calls.interrupt)
    logging.disable()
    with MockCluster() as mock:
        mock.create("t", [1, 2, 3])
        producer = Producer({"bootstrap.servers": mock.bootstrap_servers, "log_level": 0})
        for number in range(3 * RECORDS):
            producer.produce("t", b"x", partition=number % 3)
        assert producer.flush(20) == 0
        config: dict[str, Any] = {
            "bootstrap.servers": mock.bootstrap_servers,
            "group.id": "g",
            "debug": "fetch",
            "logger": logging.getLogger("client"),
            "statistics.interval.ms": 1,
            "stats_cb": calls.callback,
        }
        one = GroupConsumer(config)
        one.assign([TopicPartition("t", number, 0) for number in range(3)])
        print("ready", flush=True)  # noqa: T201 -- its output
        wrong = [found for _ in range(ROUNDS) if (found := one_round(one, calls)) is not None]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with contextlib.suppress(KeyboardInterrupt):  # one that came inside a callback, in a call that had records
            one.close()
    print(json.dumps({"wrong": wrong, **vars(calls)}), flush=True)  # noqa: T201 -- its output


def one_round(one: GroupConsumer, calls: Calls) -> dict[int, list[int]] | None:
    """Read all records; return the offsets of each partition unless each came once."""
    calls.left = SIGNALS
    for number in range(3):
        one.seek(TopicPartition("t", number, 0))
    found: dict[int, list[int]] = {number: [] for number in range(3)}
    until = time.monotonic() + 20
    while sum(map(len, found.values())) < 3 * RECORDS and time.monotonic() < until:
        try:
            for record in one.consume(40, 0.5):
                found[record.partition() or 0].append(record.offset() or 0)
        except KeyboardInterrupt:
            continue
    return None if found == {number: list(range(RECORDS)) for number in range(3)} else found


if __name__ == "__main__":
    main()
