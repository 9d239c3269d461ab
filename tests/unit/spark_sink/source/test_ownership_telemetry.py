"""What a reader says to other processes."""

import json
from pathlib import Path

from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.ownership_telemetry import AssignmentCounts, AssignmentFile, Telemetry

ONE, OTHER = TopicPartition("t", 0), TopicPartition("u", 1)
BOTH = Assignment(generation=3, partitions=frozenset({ONE, OTHER}))


def test_a_line_is_written_for_each_change_and_for_lag_once_a_second(tmp_path: Path) -> None:
    """A query that triggers ten times a second must not fill the disk with what did not change."""
    now = [10.0]
    telemetry = Telemetry(str(tmp_path / "log"), "one", clock=lambda: now[0])
    for moment, holding, lag in [(10.0, BOTH, 5), (10.1, BOTH, 4), (11.2, BOTH, 3), (13.0, BOTH, 3)]:
        now[0] = moment
        telemetry.note(holding, {ONE: lag})
    telemetry.left()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(line["time"], line["lag_records"], line["owned"]) for line in lines] == [
        (10.0, 5, {"t": [0], "u": [1]}),
        (11.2, 3, {"t": [0], "u": [1]}),
        (13.0, 0, {}),
    ]


def test_the_file_says_what_is_held_now(tmp_path: Path) -> None:
    """Nothing before the first word and after the last."""
    file = AssignmentFile(tmp_path / "holding")
    seen = [file.read()]
    file.note(BOTH, {})
    seen.append(AssignmentFile(tmp_path / "holding").read())  # another process looks
    file.left()
    assert [*seen, file.read()] == [
        AssignmentCounts(),
        AssignmentCounts(generation=3, partitions=2),
        AssignmentCounts(),
    ]


def test_a_place_that_cannot_be_written_ends_no_query(tmp_path: Path) -> None:
    """And what could not be written is written at the next trigger."""
    folder = tmp_path / "later"
    file = AssignmentFile(folder / "holding")
    file.note(BOTH, {})
    folder.mkdir()
    file.note(BOTH, {})
    assert file.read().partitions == 2
