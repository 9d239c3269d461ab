"""One member of a group as a process: writes what it owns as lines of JSON, until SIGTERM, then leaves.

Times are of the machine's monotonic clock, so that those of several processes compare.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from assignors import GroupMember, HRWAssignor
from assignors.planner.plan_result import Plan
from assignors.planner.topics_and_members import Member, Topic, TopicPartition


def main(settings: dict[str, Any]) -> None:
    """Run one member."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    lock = threading.Lock()

    def say(event: str, partitions: frozenset[TopicPartition], generation: int) -> None:
        line = {"at": time.monotonic(), "event": event, "generation": generation, "partitions": sorted(partitions)}
        with lock:
            print(json.dumps(line), flush=True)  # noqa: T201 - its output

    def callback(event: str) -> Callable[[frozenset[TopicPartition]], None]:
        return lambda partitions: say(event, partitions, member.ownership().generation)

    class Assignor(HRWAssignor):
        def _kafka_azimuth_plan(self, topics: list[Topic], members: list[Member]) -> Plan:
            say("plans", frozenset(), -1)
            time.sleep(settings.get("plan_s", 0.0))
            return super()._kafka_azimuth_plan(topics, members)

    member = GroupMember(
        settings["config"],
        pattern=settings["pattern"],
        assignors=[
            Assignor(
                agent=settings["agent"],
                cooperative=settings["cooperative"],
                workers=settings.get("workers"),
                watch_interval_s=0.5,
            )
        ],
        on_assigned=callback("assigned"),
        on_revoked=callback("revoked"),
        on_lost=callback("lost"),
    )
    seen = -1
    with member:
        while not ended.wait(0.02):
            now = member.ownership()
            if now.joined and now.version != seen:
                seen = now.version
                say("owns", now.partitions, now.generation)
            elif now.generation < 0 and -1 < seen != now.version:
                seen = now.version
                say("joins", frozenset(), -1)  # and has no answer yet
    say("closed", frozenset(), -1)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
