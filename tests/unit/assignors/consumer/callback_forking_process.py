"""A program whose callback forks: the child leaves the callback in a way of its own, and the parent reads on.

Arguments: servers, protocol, the callback, the child's way. It prints one line of JSON: the calls that ended in the
child, how the child ended, the parent's records, and its rebalances.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from assignors import GroupConsumer
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.forking_process import end_of, make


class Program:
    """The consumer and its callbacks."""

    def __init__(self, servers: str, protocol: str, where: str, way: str) -> None:
        self.where, self.way = where, way
        self.events: list[str] = []
        self.children: list[int] = []
        self.records = 0
        self.of_child = Path(tempfile.mkdtemp()) / "child"
        more = {"stats_cb": self.reported, "statistics.interval.ms": 50, "on_commit": self.committed}
        self.one: GroupConsumer = make(servers, "ours", protocol, **more)

    def fork(self, where: str) -> None:
        """Fork once, in the callback of this run."""
        if where != self.where or self.children or not (self.records or where == "on_assign"):
            return
        self.children.append(os.fork())
        if not self.children[0]:
            if self.way == "exits":
                sys.exit(0)
            if self.way == "raises":
                raise LookupError

    def assigned(self, _: object, partitions: list[Any]) -> None:
        """Count."""
        self.events += ["assigned"] * bool(partitions)
        self.fork("on_assign")

    def revoked(self, *_: object) -> None:
        """Count."""
        self.events.append("revoked")
        self.fork("on_revoke")

    def reported(self, _: str) -> None:
        """Fork in a callback of the configuration."""
        self.fork("stats_cb")

    def committed(self, *_: object) -> None:
        """Fork in the callback of a commit."""
        self.fork("on_commit")

    def read(self, seconds: float, until: int) -> None:
        """Read on for this time, or up to this number of records."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.records < until:
            self.records += len(self.one.consume(10, 0.1))

    def run(self) -> None:
        """Read, revoke, read on, and close."""
        self.one.subscribe(["t"], on_assign=self.assigned, on_revoke=self.revoked)
        self.read(30, 3 * RECORDS)
        self.one.commit(asynchronous=True)
        self.read(0.5, 10**9)
        self.one.close()

    def note(self, text: str) -> None:
        """Leave word for the parent."""
        self.of_child.write_text(text)


def main() -> None:
    """Run it in a parent and its child; only the parent prints."""
    program = Program(*sys.argv[1:])
    try:
        program.run()
    except BaseException as error:  # of the child
        if program.children and not program.children[0]:
            program.note(type(error).__name__)
        raise
    if not program.children[0]:
        program.note("went on")
        return
    ended = end_of(program.children[0])
    found = {"call": program.of_child.read_text(), "child": ended, "records": program.records, "events": program.events}
    print(json.dumps(found))  # noqa: T201 -- its output


if __name__ == "__main__":
    main()
