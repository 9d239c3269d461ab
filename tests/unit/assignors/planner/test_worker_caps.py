"""Workers per topic: numbers, names, patterns, and sources that change."""

import logging
from pathlib import Path

import pytest

from assignors import WorkersError
from assignors.planner.worker_caps import NO_CAP, worker_caps
from assignors.protocol.worker_caps_source import WorkersSource


@pytest.mark.parametrize(
    ("workers", "caps"),
    [
        (None, [NO_CAP, NO_CAP, NO_CAP]),
        (2, [2, 2, 2]),
        ({"a.x": 1}, [1, NO_CAP, NO_CAP]),
        ({"a.*": 3, "a.x": 1}, [1, 3, NO_CAP]),  # a name goes before a pattern, in any order
        ({"a[.]y": 4, "*": 2}, [2, 4, 2]),  # patterns in their order
        ({"*": 2, "a.x": None}, [NO_CAP, 2, 2]),  # None lifts the cap for one topic
    ],
)
def test_names_go_before_patterns(workers: object, caps: list[int]) -> None:
    """Caps of the topics a.x, a.y and b."""
    assert worker_caps(workers, ["a.x", "a.y", "b"]).tolist() == caps  # type: ignore[arg-type] # drawn from the table


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2", {"a": 0}, {"(": 1}, {1: 1}])
def test_what_is_no_number_of_workers_is_refused(workers: object) -> None:
    """Named with its value."""
    with pytest.raises(WorkersError, match="workers"):
        worker_caps(workers, ["a"])  # type: ignore[arg-type] # wrong on purpose


def test_a_failing_source_keeps_the_last_good_value_and_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    """A group never stops because a user's function raises."""
    answers: list[object] = [2, 3, OSError("away"), OSError("away"), 0, 4]

    def ask() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value] # 0 is the wrong value of this test

    source = WorkersSource(ask)
    assert source.value == 2
    assert [source.refresh() for _ in range(5)] == [True, False, False, False, True]
    assert source.value == 4
    assert [r.levelno for r in caplog.records] == [logging.WARNING]


def test_a_file_is_read_again_only_when_it_changed(tmp_path: Path) -> None:
    """A number, null or an object; the content after the change counts."""
    path = tmp_path / "workers.json"
    path.write_text('{"a": 2, "b.*": null}')
    source = WorkersSource(str(path))
    assert source.value == {"a": 2, "b.*": None}
    assert not source.refresh()
    path.write_text("null")
    assert source.refresh()
    assert source.value is None
    path.unlink()
    assert not source.refresh()
