"""One GroupConsumer as a process: writes what was delivered as lines of JSON, until SIGTERM, then ends.

Offsets are committed on revocation and every `commit_s` seconds, after the line with their records was written. What
the package logs goes to standard error.
"""

import json
import logging
import signal
import sys
import threading
import time
from typing import Any

from confluent_kafka import Message, TopicPartition
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

from assignors import GroupConsumer, HRWAssignor, MembershipError, NotOwnedError


def assignor(name: str, agent: str) -> AbstractPartitionAssignor:
    """The assignor of this name."""
    if name == "range":
        return RangePartitionAssignor()
    if name == "cooperative-sticky":
        return CooperativeStickyAssignor()
    return HRWAssignor(agent=agent, cooperative=name == "hrw-cooperative")


def say(event: str, partitions: list[tuple[str, int]], **more: object) -> None:
    """Write a line."""
    line = {"at": time.monotonic(), "event": event, "partitions": partitions, **more}
    print(json.dumps(line), flush=True)  # noqa: T201 - its output


def spans(messages: list[Message]) -> list[tuple[str, int, list[int]]]:
    """Topic, partition and offsets of what was delivered."""
    found: dict[tuple[str, int], list[int]] = {}
    for one in messages:
        found.setdefault((str(one.topic()), one.partition() or 0), []).append(one.offset() or 0)
    return [(*key, offsets) for key, offsets in found.items()]


def say_delivered(messages: list[Message]) -> None:
    """Write the records first: what befalls the process after that must not hide that they were delivered."""
    errors = [error for one in messages if (error := one.error()) is not None]
    if records := [one for one in messages if one.error() is None]:
        say("records", [], spans=spans(records))
    if errors:  # of a broker that is away or slow, beside which records still come
        say("errors", [], errors=[str(one) for one in errors])
    assert not any(one.fatal() for one in errors)


def main(settings: dict[str, Any]) -> None:
    """Run one consumer."""
    logging.basicConfig(format="%(name)s: %(message)s")
    logging.getLogger("assignors").setLevel(logging.INFO)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())

    def named(partitions: list[TopicPartition]) -> list[tuple[str, int]]:
        return [(one.topic, one.partition) for one in partitions]

    def revoked(one: GroupConsumer, partitions: list[TopicPartition]) -> None:
        one.commit(offsets=one.position(partitions), asynchronous=False)
        say("revoked", named(partitions))

    consumer = GroupConsumer(
        settings["config"], assignors=[assignor(name, settings["agent"]) for name in settings["assignors"]] or None
    )
    seen, committed_at = -1, time.monotonic()
    with consumer:
        consumer.subscribe(
            [settings["pattern"]],
            on_assign=lambda _, partitions: say("assigned", named(partitions)),
            on_revoke=revoked,
            on_lost=lambda _, partitions: say("lost", named(partitions)),
        )
        while not ended.is_set():
            messages = consumer.consume(settings["most"], 0.1)
            say_delivered(messages)
            now = consumer.ownership()
            if now.joined and now.version != seen:
                seen = now.version
                say("owns", sorted(now.partitions), generation=now.generation)
            elif now.partitions and now.generation < 0 and now.version != seen:
                seen = now.version
                say("joins", [])  # and has no answer yet
            if time.monotonic() - committed_at > settings["commit_s"]:
                committed_at = time.monotonic()
                try:
                    consumer.commit(asynchronous=False)
                except NotOwnedError:
                    pass  # a rebalance is under way: on_revoke commits the revoked partitions
                except MembershipError as error:
                    say("refused", [], reason=str(error))
    say("closed", [])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
