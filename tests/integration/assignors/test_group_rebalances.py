"""Groups of real processes: ownership is taken from their reports, and no partition is owned twice."""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.integration.assignors.conftest import Topics
from tests.integration.assignors.members import Process, Start, overlaps, owned_twice, settled
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.integration,
    pytest.mark.parametrize(
        "cooperative",
        [pytest.param(False, id="eager", marks=pytest.mark.slow), pytest.param(True, id="cooperative")],
    ),
]

TOPICS = 224
PATIENCE_S = 90.0


def test_members_join_die_and_leave(topics: Topics, start: Start) -> None:
    """224 topics by pattern: after each change all are owned, and no partition by two, in a generation or at a time."""
    names = topics.make(*(f"route-{n}" for n in range(TOPICS)), partitions=1)
    everything = {(name, 0) for name in names}
    one = start("agent-1")
    wait_until(lambda: settled([one], everything), PATIENCE_S)
    two, three = start("agent-2"), start("agent-3")
    wait_until(lambda: settled([one, two, three], everything), PATIENCE_S)
    fair = {len(process.owns()) for process in (one, two, three)}
    assert max(fair) <= 1.05 * TOPICS / 3 + 1
    before = one.owns() | two.owns()
    three.kill()
    wait_until(lambda: settled([one, two], everything), PATIENCE_S)
    assert before <= one.owns() | two.owns()
    two.stop()
    wait_until(lambda: settled([one], everything), PATIENCE_S)
    processes = [one, two, three]
    assert owned_twice(processes) == []
    assert overlaps(processes) == []
    assert not any("Traceback" in process.errors() for process in processes)


def test_a_rolling_restart_of_static_members_moves_nothing(topics: Topics, start: Start) -> None:
    """Each comes back within its session time-out, to its own partitions (KIP-345)."""
    names = topics.make(*(f"route-{n}" for n in range(TOPICS)), partitions=1)
    everything = {(name, 0) for name in names}
    running = {name: start(name, static=True) for name in ("agent-1", "agent-2", "agent-3")}
    all_of_them = list(running.values())
    wait_until(lambda: settled(list(running.values()), everything), PATIENCE_S)
    before = {name: process.owns() for name, process in running.items()}
    for name in before:
        running[name].stop()
        running[name] = start(name, run="-again", static=True)
        all_of_them.append(running[name])
        wait_until(lambda: settled(list(running.values()), everything), PATIENCE_S)
    assert {name: process.owns() for name, process in running.items()} == before
    assert owned_by_names(all_of_them) == []
    assert overlaps(all_of_them) == []


def test_a_change_of_workers_settles(topics: Topics, start: Start, tmp_path: Path) -> None:
    """From three members a topic to one: the leader sees the file change, and the group comes to rest."""
    names = topics.make(*(f"route-{n}" for n in range(5)), partitions=6)
    everything = {(name, n) for name in names for n in range(6)}
    workers = tmp_path / "workers.json"
    workers.write_text("3")
    processes = [start(f"agent-{n}", workers=workers) for n in (1, 2, 3)]

    def readers() -> int:
        found: dict[str, set[str]] = defaultdict(set)
        for process in processes:
            for topic, _ in process.owns():
                found[topic].add(process.name)
        return max(map(len, found.values()))

    # Five topics of six partitions, ten partitions a member: a balanced plan cannot leave each topic to one.
    wait_until(lambda: settled(processes, everything) and readers() > 1, PATIENCE_S)
    workers.write_text("1")
    wait_until(lambda: settled(processes, everything) and readers() == 1, PATIENCE_S)
    assert owned_twice(processes) == []
    assert overlaps(processes) == []


def owned_by_names(processes: list[Process]) -> list[tuple[int, str, int, list[str]]]:
    """As `owned_twice`; a process and the one started in its place are one static member."""
    return [one for one in owned_twice(processes) if len({name.removesuffix("-again") for name in one[3]}) > 1]
