"""A program that forks while its consumer runs: the child ends in a way of its own, and the parent reads on.

Arguments: servers, class, protocol, the child's end. It prints one line of JSON: how the child ended, the parent's
records after it, and how often partitions were assigned and given up.
"""

import json
import os
import signal
import sys
import time
from typing import Any

from confluent_kafka import Consumer

from assignors import GroupConsumer, HRWAssignor
from tests.unit.assignors.conftest import RECORDS

FIRST = 10
CHILD_S = 20.0


def make(servers: str, kind: str, protocol: str, **more: Any) -> Any:
    """Create the consumer."""
    config: dict[str, Any] = {
        "bootstrap.servers": servers,
        "group.id": f"fork-{os.getpid()}",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": True,
        "log_level": 0,
        **more,
    }
    if protocol == "classic":
        config |= {"session.timeout.ms": 1000, "heartbeat.interval.ms": 100}
    if kind == "bare":
        return Consumer(config)
    if protocol == "consumer":
        return GroupConsumer(config)
    return GroupConsumer(config, assignors=[HRWAssignor(agent="a")], member={"api_version": (2, 0)})


def end_of(child: int) -> str:
    """Wait for the child; kill it if it hangs."""
    until = time.monotonic() + CHILD_S
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return f"code {os.waitstatus_to_exitcode(status)}"
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def main() -> None:
    """Run it in a parent and its child; only the parent prints."""
    servers, kind, protocol, end = sys.argv[1:]
    events: list[str] = []
    one = make(servers, kind, protocol)
    one.subscribe(
        ["t"],
        on_assign=lambda _, partitions: events.extend(["assigned"] * bool(partitions)),
        on_revoke=lambda *_: events.append("revoked"),
        on_lost=lambda *_: events.append("lost"),
    )
    records = 0
    while records < FIRST:
        records += len(one.consume(FIRST - records, 0.1))
    child = os.fork()
    if not child:
        if end == "sys.exit":
            sys.exit(0)
        if end == "os._exit":
            os._exit(0)
        return  # off the end of the program
    ended = end_of(child)
    until = time.monotonic() + 2.5  # longer than the session: a child that left the group would be noticed
    more = 0
    while time.monotonic() < until:
        more += len(one.consume(1000, 0.1))
    before = list(events)
    one.close()
    print(json.dumps({"child": ended, "records": records + more, "of": 3 * RECORDS, "events": before}))  # noqa: T201 -- its output


if __name__ == "__main__":
    main()
