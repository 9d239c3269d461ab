"""The present workers, and the effect of an invalid file."""

from pathlib import Path

import pytest

from assignors import WorkersError
from assignors.fleet import FleetWorkers
from spark_sink.fleet.workers_in_force import WorkersNow, read_overrides


@pytest.mark.parametrize(
    "text",
    [
        '{"t": "agent-2"}',
        '{"t": [["a"]]}',
        '{"t": [1]}',
        '{"t": 1.5}',
        '{"t": {"a": 1}}',
        '{"t": null}',
        '["t"]',
        "3",
        "",
        "{",
    ],
)
def test_anything_but_numbers_and_lists_of_agents_is_one_expected_error(tmp_path: Path, text: str) -> None:
    """A text for a list would name an agent for each of its letters."""
    file = tmp_path / "overrides.json"
    file.write_text(text)
    with pytest.raises(WorkersError, match=r"overrides\.json.*need a JSON object"):
        read_overrides(file)


def test_bytes_that_are_no_text_are_an_expected_error(tmp_path: Path) -> None:
    """Such as a file half copied."""
    file = tmp_path / "overrides.json"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkersError, match="need a JSON object"):
        read_overrides(file)


def test_a_failure_is_told_until_the_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also between two looks: it may not come and go in the status, nor be logged at each look.

    A file that is gone is a failure, too: it dropped all overrides in silence. An empty object drops them on purpose.
    """
    now = 100.0
    monkeypatch.setattr("spark_sink.fleet.workers_in_force.time.monotonic", lambda: now)
    file = tmp_path / "overrides.json"
    file.write_text('{"t": 0}')
    workers = WorkersNow(FleetWorkers(default=2), "f", file, None)
    for _ in range(3):
        with pytest.raises(WorkersError):
            workers([])
    file.write_text('{"t": 3}')
    with pytest.raises(WorkersError):
        workers([])
    now += 5
    assert workers([]) == FleetWorkers(default=2, overrides={"t": 3})
    file.unlink()
    assert workers([]).overrides == {"t": 3}
    now += 5
    with pytest.raises(WorkersError, match="there is no such file of overrides"):
        workers([])
    file.write_text("{}")
    now += 5
    assert workers([]) == FleetWorkers(default=2)
