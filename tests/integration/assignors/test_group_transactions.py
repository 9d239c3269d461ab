"""Transactions of a GroupConsumer and librdkafka's producer: each record is copied exactly once, by a living member."""

import json
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.integration.assignors.conftest import Topics
from tests.integration.assignors.members import Process
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

SCRIPT = Path(__file__).with_name("transaction_process.py")
RECORDS, PARTITIONS = 200, 4
PATIENCE_S = 90.0


def copies(topics: Topics, output: str, wanted: int) -> Counter[tuple[str, int, int]]:
    """The committed records of the output, once as many as wanted are there."""
    reader = Consumer(
        {**topics.consumer_config(), "group.id": f"{topics.group}-reader", "isolation.level": "read_committed"}
    )
    found: Counter[tuple[str, int, int]] = Counter()
    try:
        reader.subscribe([output])

        def enough() -> bool:
            found.update(tuple(json.loads(one.value() or b"")) for one in reader.consume(1000, 0.5))
            return found.total() >= wanted

        wait_until(enough, PATIENCE_S)
        while more := reader.consume(1000, 3.0):  # none may come after the wanted ones
            found.update(tuple(json.loads(one.value() or b"")) for one in more)
    finally:
        reader.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_was_away_cannot_commit_its_transaction(topics: Topics, tmp_path: Path, protocol: str) -> None:
    """A member stands still in an open transaction until others have its partitions; the broker refuses its commit."""
    [output] = topics.make("out", partitions=1)
    sources = topics.make("in", partitions=PARTITIONS)
    topics.fill(sources, RECORDS, PARTITIONS)
    hold = tmp_path / "hold"
    hold.touch()
    config = topics.consumer_config()
    if protocol == "consumer":
        config = topics.broker_assigned_config(**{"group.remote.assignor": "uniform"})

    def start(name: str, file: Path) -> Process:
        settings = {
            "config": config,
            "producer": {
                "bootstrap.servers": topics.bootstrap_servers,
                "transactional.id": f"{topics.prefix}-{name}",
                "transaction.timeout.ms": 120_000,  # the group must refuse, not the time
                "log_level": 0,
            },
            "pattern": f"^{topics.prefix}\\.in",
            "output": output,
            "agent": name,
            "hold": str(file),
        }
        return Process(tmp_path, settings, name, SCRIPT)

    late = start("late", hold)
    other = None
    try:
        wait_until(lambda: late.last("holds") == "holds", PATIENCE_S)
        late.pause()
        hold.unlink()
        other = start("other", tmp_path / "none")
        wait_until(lambda: len(other.owns()) == PARTITIONS, PATIENCE_S)
        late.resume()
        wait_until(lambda: late.last("refused") == "refused", PATIENCE_S)
        wanted = {(sources[0], part, offset) for part in range(PARTITIONS) for offset in range(RECORDS)}
        found = copies(topics, output, len(wanted))
    finally:
        for one in (late, other):
            if one is not None:
                one.stop()
    assert found.keys() == wanted
    assert {record: times for record, times in found.items() if times > 1} == {}
    assert [one["reason"] for one in late.lines() if one["event"] == "refused"]
    assert "Traceback" not in late.errors() + other.errors()
