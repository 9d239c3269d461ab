"""A program's own assignor that raises: the member ends with each join, and the program hears of it."""

import time
from typing import Any

import pytest
from confluent_kafka import KafkaError

from assignors import GroupConsumer, HRWAssignor
from producer.testing import MockCluster
from tests.records import read
from tests.unit.assignors.conftest import RECORDS


class _Fails(HRWAssignor):
    """Raises in one of its calls."""

    def __init__(self, where: str) -> None:
        super().__init__(agent="a")
        self.where = where

    def metadata(self, topics: set[str]) -> Any:
        self._fail_in("metadata")
        return super().metadata(topics)

    def assign(self, cluster: Any, members: list[Any]) -> Any:
        self._fail_in("assign")
        return super().assign(cluster, members)

    def on_assignment(self, assignment: Any, generation: int) -> None:
        self._fail_in("on_assignment")
        super().on_assignment(assignment, generation)

    def _fail_in(self, name: str) -> None:
        if self.where == name:
            raise ZeroDivisionError(f"in {name}")


def _messages(one: GroupConsumer, seconds: float) -> list[tuple[int, str]]:
    """The codes and texts of errors that arrive within so many seconds after the first one."""
    found: list[tuple[int, str]] = []
    until = time.monotonic() + 20
    while time.monotonic() < until:
        message = one.poll(0.1)
        if message is not None and (error := message.error()) is not None:
            until = until if found else time.monotonic() + seconds
            found.append((error.code(), error.str()))
    return found


@pytest.mark.parametrize("where", ["metadata", "assign", "on_assignment"])
def test_an_assignor_that_raises_is_reported_once_until_the_member_has_joined(mock: MockCluster, where: str) -> None:
    """The error was only in the log, and `poll` returned None without end."""
    assignor = _Fails(where)
    config = {
        "bootstrap.servers": mock.bootstrap_servers,
        "group.id": f"fails-in-{where}",
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 1000,
        "heartbeat.interval.ms": 100,
        "log_level": 0,
    }
    with GroupConsumer(config, assignors=[assignor], member={"api_version": (2, 0)}) as one:
        one.subscribe(["t"])
        [(code, text)] = _messages(one, 2.0)
        assert code == KafkaError._APPLICATION
        assert f"in {where}" in text
        assignor.where = ""
        assert len(read(one, 3 * RECORDS)) == 3 * RECORDS
