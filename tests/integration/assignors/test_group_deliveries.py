"""Three consumers, records flowing, and what befalls a group: SIGKILL, rolling restarts, another assignor."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupState

from spark_sink.demo.cluster import Cluster
from tests.integration.assignors.conftest import Topics
from tests.integration.assignors.flow import PARTITIONS, Flow, wait_until_all_read
from tests.integration.assignors.members import CONSUMER, Process, Start, deliveries, overlaps, owned_twice, settled
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.long]

PATIENCE_S = 90.0


@pytest.fixture
def flow(topics: Topics) -> Iterator[Flow]:
    """Records to six topics of four partitions."""
    made = Flow(topics)
    yield made
    made.end()


@pytest.fixture
def start(topics: Topics, tmp_path: Path) -> Iterator[Start]:
    """Start consumers by name; all are ended with the test."""
    started: list[Process] = []

    def begin(name: str, *assignors: str, run: int = 0, commit_s: float = 1.0, **config: object) -> Process:
        settings = {
            "config": topics.consumer_config(**config),
            "commit_s": commit_s,
            "pattern": f"^{topics.pattern}",
            "assignors": assignors,
            "agent": name,
            "most": 500,
        }
        started.append(Process(tmp_path, settings, f"{name}-{run}", CONSUMER))
        return started[-1]

    yield begin
    for one in started:
        if one.killed_at is None:
            one.stop()


def reading(processes: list[Process]) -> Callable[[], bool]:
    """Each of them has reported that it owns partitions, and has received records since it started."""
    return lambda: all(one.owns() and deliveries([one]) for one in processes)


@pytest.mark.parametrize("name", [pytest.param("hrw", marks=[pytest.mark.slow, pytest.mark.matrix]), "hrw-cooperative"])
def test_killed_consumers_lose_no_record(flow: Flow, start: Start, name: str) -> None:
    """SIGKILL of each in turn: what it had not committed is delivered again by others, nothing is left out."""
    running = [start(f"agent-{n}", name) for n in range(3)]
    everyone = list(running)
    wait_until(reading(running), PATIENCE_S)
    for n in (0, 1):
        running[n].kill()
        running[n] = start(f"agent-{n}", name, run=1)
        everyone.append(running[n])
        wait_until(reading(running), PATIENCE_S)
    flow.end()
    wait_until_all_read(flow, everyone, PATIENCE_S)
    assert owned_twice(everyone) == []
    assert overlaps(everyone) == []
    assert not any(one.errors().count("Traceback") for one in everyone)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hrw", pytest.param("hrw-cooperative", marks=pytest.mark.matrix)])
def test_a_rolling_restart_delivers_each_record_once(flow: Flow, start: Start, name: str) -> None:
    """Offsets are committed on revocation: the next owner begins exactly where the last one ended."""
    running = [start(f"agent-{n}", name) for n in range(3)]
    everyone = list(running)
    wait_until(reading(running), PATIENCE_S)
    for n in range(3):
        running[n].stop()
        running[n] = start(f"agent-{n}", name, run=1)
        everyone.append(running[n])
        wait_until(reading(running), PATIENCE_S)
    flow.end()
    wait_until_all_read(flow, everyone, PATIENCE_S)
    delivered = deliveries(everyone)
    assert [(record, times) for record, times in delivered.items() if times > 1] == []
    assert delivered.keys() == flow.written
    assert owned_twice(everyone) == []
    assert overlaps(everyone) == []
    assert not any("Traceback" in one.errors() for one in everyone)


@pytest.mark.parametrize(
    "commit_s",
    [
        pytest.param(3600.0, id="at once"),
        pytest.param(1.0, id="when a commit has waited in vain", marks=pytest.mark.slow),
    ],
)
def test_a_consumer_told_to_end_within_a_rebalance_commits_and_each_record_comes_once(
    topics: Topics, flow: Flow, start: Start, commit_s: float
) -> None:
    """Between a join and its answer nothing can be committed: it waits for the answer, then gives up.

    One member stands still, so that the rebalance that a third one asks for stays open, and goes on only when the
    second, which has joined again, was told to end. Records keep coming.
    """
    patient = {"session.timeout.ms": 60_000}  # a stopped process stays a member
    still, ending = (start(f"agent-{n}", "hrw-cooperative", commit_s=commit_s, **patient) for n in range(2))
    everything = {(name, n) for name in flow.names for n in range(PARTITIONS)}
    wait_until(lambda: settled([still, ending], everything), PATIENCE_S)
    wait_until(reading([still, ending]), PATIENCE_S)
    still.pause()
    third = start("agent-2", "hrw-cooperative")
    wait_until(lambda: ending.last("owns", "joins") == "joins", PATIENCE_S)
    assert topics.state() is ConsumerGroupState.PREPARING_REBALANCING
    ending.terminate()
    wait_until(lambda: "ends when the rebalance under way is over" in ending.errors(), PATIENCE_S)
    still.resume()
    assert ending.exit_code(PATIENCE_S) == 0
    assert "Traceback" not in ending.errors()
    assert ending.last("revoked", "closed") == "closed"
    wait_until(reading([still, third]), PATIENCE_S)
    flow.end()
    wait_until_all_read(flow, [still, ending, third], PATIENCE_S)
    delivered = deliveries([still, ending, third])
    assert [(record, times) for record, times in delivered.items() if times > 1] == []
    assert delivered.keys() == flow.written


@pytest.mark.slow
@pytest.mark.matrix  # it takes minutes, and the chaos of a fleet kills coordinators, too
@pytest.mark.parametrize("name", ["hrw", "hrw-cooperative"])
def test_a_coordinator_killed_within_rebalances_costs_no_record(
    topics: Topics, cluster: Cluster, flow: Flow, start: Start, name: str
) -> None:
    """SIGKILL of the group's broker during a join and a leave: every record is read, once if no partition is lost."""
    running = [start(f"agent-{n}", name) for n in range(3)]
    wait_until(reading(running), PATIENCE_S)
    everyone = list(running)
    for run in range(2):
        coordinator = topics.coordinator()
        running.append(start(f"agent-{3 + run}", name))
        everyone.append(running[-1])
        leaving = running.pop(0)
        leaving.terminate()
        cluster.kill(coordinator)
        try:
            assert leaving.exit_code(PATIENCE_S) == 0
            wait_until(reading(running), PATIENCE_S)
        finally:
            cluster.start(coordinator)
        wait_until(reading(running), PATIENCE_S)
    flow.end()
    wait_until_all_read(flow, everyone, PATIENCE_S)
    delivered = deliveries(everyone)
    assert delivered.keys() >= flow.written
    if not any(one.last("lost") for one in everyone):
        assert [(record, times) for record, times in delivered.items() if times > 1] == []
    assert owned_twice(everyone) == []
    assert overlaps(everyone) == []
    assert not any("membership ended" in one.errors() for one in everyone)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [pytest.param("range", "hrw", marks=pytest.mark.matrix), ("cooperative-sticky", "hrw-cooperative")],
)
def test_a_group_changes_its_assignor_while_records_flow(
    topics: Topics, flow: Flow, start: Start, old: str, new: str
) -> None:
    """docs/migration.md: first all offer both, the new one first; then only the new one. Each record once."""
    running = [start(f"agent-{n}", old) for n in range(3)]
    everyone = list(running)
    wait_until(reading(running), PATIENCE_S)
    wait_until(lambda: topics.assignor() == old, PATIENCE_S)  # none in the middle of a rebalance
    for run, offered in enumerate([(new, old), (new,)], start=1):
        for n in range(3):
            running[n].stop()
            running[n] = start(f"agent-{n}", *offered, run=run)
            everyone.append(running[n])
            wait_until(reading(running), PATIENCE_S)
        wait_until(lambda: topics.assignor() == new, PATIENCE_S)
    flow.end()
    wait_until_all_read(flow, everyone, PATIENCE_S)
    delivered = deliveries(everyone)
    assert [(record, times) for record, times in delivered.items() if times > 1] == []
    assert delivered.keys() == flow.written
    assert owned_twice(everyone) == []
    assert overlaps(everyone) == []
