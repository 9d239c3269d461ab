"""Partitions that do not flow are classified, reported and not scaled."""

from dataclasses import replace

import numpy as np
import pytest

from assignors.scaling import NEVER, UNKNOWN, Bounds, Capacity, PartitionState, Scaler, State, Window, decide
from tests.unit.assignors.scaling.conftest import MakeWindow

SCALER = Scaler(policy=Capacity(), limits=(Bounds(),), worker_rate=1000.0)


def states(seen: Window) -> list[str]:
    """The states of a window's partitions."""
    return [PartitionState(int(s)).name for s in decide(SCALER, seen, State(workers=3)).view.states]


def test_a_poison_partition_is_stalled_and_changes_nothing(steady: MakeWindow) -> None:
    """A record that no consumer can read causes a lag that more workers would not lower."""
    seen = steady([50] * 8, [50] * 7 + [0], [0] * 7 + [150_000])
    made = decide(SCALER, seen, State(workers=1), "t")
    assert states(seen) == ["FLOWING"] * 7 + ["STALLED"]
    assert made.workers == 1
    assert "look at the record" in made.findings["stalled"]


def test_a_group_that_stopped_keeps_its_number(steady: MakeWindow) -> None:
    """No consumer reads, so more workers would not help."""
    seen = steady([50] * 4, [0] * 4, [100_000] * 4)
    made = decide(SCALER, seen, State(workers=2), "t")
    assert set(states(seen)) == {"STOPPED"}
    assert made.workers == 2
    assert made.findings.keys() == {"stopped"}


def test_an_uncommitted_group_with_old_data_is_not_scaled(steady: MakeWindow) -> None:
    """A day of retained records and no commit at all: a new group, or one that died long ago."""
    seen = steady([50] * 4, [50] * 4, [0] * 4)
    never = Window(times_s=seen.times_s, start=seen.start, end=seen.end, committed=np.full_like(seen.committed, NEVER))
    made = decide(SCALER, never, State(workers=1), "t")
    assert set(states(never)) == {"UNCOMMITTED"}
    assert made.workers == 1
    assert made.view.lag.tolist() == never.end[-1].tolist()  # reported as all that is kept


def test_a_hot_partition_is_reported_and_not_scaled(steady: MakeWindow) -> None:
    """A partition has one reader, so more workers do not help."""
    seen = steady([1400] + [90] * 31, [700] + [90] * 31, [2_000_000] + [0] * 31)
    made = decide(SCALER, seen, State(workers=5), "t")
    assert states(seen)[0] == "HOT"
    assert made.workers <= 5
    assert "more partitions do" in made.findings["hot"]


def test_a_partition_that_its_worker_holds_up_is_not_hot(steady: MakeWindow) -> None:
    """It has all the lag, and as a worker's only partition it would catch up: more workers help, so it counts."""
    seen = steady([560] + [250] * 15, [500] + [250] * 15, [130_000] + [0] * 15)
    made = decide(SCALER, seen, State(workers=8))
    assert set(states(seen)) == {"FLOWING"}
    assert made.workers > 8


def test_a_jump_counts_for_an_hour(steady: MakeWindow) -> None:
    """However long the window is."""
    seen = steady([50] * 2, [50] * 2, [1000] * 2, steps=240)
    committed = seen.committed.copy()
    committed[:100, 0] += 500_000
    assert states(replace(seen, committed=committed, end=seen.end + 1_000_000)) == ["FLOWING"] * 2
    committed[100:200, 0] += 500_000
    assert states(replace(seen, committed=committed, end=seen.end + 1_000_000)) == ["REWOUND", "FLOWING"]


def test_a_reset_is_told_apart(steady: MakeWindow) -> None:
    """A person rewound the group, or the topic was recreated."""
    seen = steady([50] * 3, [50] * 3, [0] * 3)
    committed, end = seen.committed.copy(), seen.end.copy()
    committed[-1, 0] -= 1_000_000
    committed[:, 1] += 5_000_000
    reset = Window(times_s=seen.times_s, start=seen.start, end=end, committed=committed)
    assert states(reset) == ["REWOUND", "REWOUND", "FLOWING"]


@pytest.mark.parametrize("column", ["end", "committed"])
def test_what_cannot_be_asked_for_is_unknown(steady: MakeWindow, column: str) -> None:
    """Not 0: the topic keeps its workers until something is known again."""
    seen = steady([5000] * 2, [100] * 2, [9_000_000] * 2)
    columns = {name: getattr(seen, name).copy() for name in ("start", "end", "committed")}
    columns[column][-1] = UNKNOWN
    made = decide(SCALER, Window(times_s=seen.times_s, **columns), State(workers=3), "t")
    assert set(made.view.states) == {PartitionState.UNKNOWN}
    assert made.view.lag.tolist() == [UNKNOWN] * 2
    assert made.workers == 3
    assert made.findings.keys() == {"unknown"}
