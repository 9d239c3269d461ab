"""The timeline of a run, from the table's log and the agents' telemetry."""

import json
from pathlib import Path

from spark_sink.demo.timeline import (
    Commit,
    CommitLog,
    find_takeover,
    lag_over_time,
    parse_commit,
    read_ownership,
)
from spark_sink.ranges.batch_offset import TopicPartition

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def _entry(time_ms: int, agent: str, rows: int, **positions: int) -> str:
    actions: list[dict[str, object]] = [{"commitInfo": {"timestamp": time_ms, "kafka-azimuth": {"agent": agent}}}]
    actions += [{"txn": {"appId": f"g/t/{name[1:]}", "version": end}} for name, end in positions.items()]
    actions += [{"add": {"path": f"{agent}-{time_ms}.parquet", "stats": json.dumps({"numRecords": rows})}}]
    return "\n".join(json.dumps(a) for a in actions)


def _commit(time: float, agent: str, rows: int, *partitions: TopicPartition) -> Commit:
    return Commit(time=time, agent=agent, rows=rows, positions=dict.fromkeys(partitions, 1), files=())


def test_a_commit_says_who_wrote_what_up_to_where() -> None:
    """The pictures get all data about the table from its log."""
    commit = parse_commit(_entry(2500, "a", 7, p0=9, p1=4), "g")
    assert commit == Commit(time=2.5, agent="a", rows=7, positions={ZERO: 9, ONE: 4}, files=("a-2500.parquet",))


def test_entries_of_others_are_left_out() -> None:
    """Creating, optimising, or another group's commit moves none of our positions."""
    assert parse_commit(_entry(1, "a", 7, p0=9), "other") is None
    assert parse_commit('{"protocol": {}}\n{"metaData": {}}', "g") is None


def test_a_log_is_read_once_as_it_grows(tmp_path: Path) -> None:
    """The demo looks five times a second; no entry may be counted twice."""
    (tmp_path / "_delta_log").mkdir()
    log = CommitLog(tmp_path, "g")
    assert log.read() == []
    for version, rows in enumerate((3, 4)):
        (tmp_path / "_delta_log" / f"{version:020}.json").write_text(_entry(version, "a", rows, p0=rows))
        assert [c.rows for c in log.read()] == [rows]
    assert log.rows == 7


def test_ownership_keeps_changes_and_survives_a_torn_line(tmp_path: Path) -> None:
    """A killed agent leaves half a line; a line without a change is only about lag."""
    lines = [
        {"time": 1.0, "agent": "a", "generation": 1, "owned": {"t": [0, 1]}, "lag_records": 5},
        {"time": 2.0, "agent": "a", "generation": 1, "owned": {"t": [0, 1]}, "lag_records": 3},
        {"time": 3.0, "agent": "a", "generation": 2, "owned": {"t": [1]}, "lag_records": 0},
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines) + '\n{"time": 4.0, "ag')
    assert [(o.time, o.partitions) for o in read_ownership(file)] == [
        (1.0, frozenset({ZERO, ONE})),
        (3.0, frozenset({ONE})),
    ]
    assert read_ownership(tmp_path / "none.jsonl") == []


def test_a_takeover_is_anothers_commit_of_the_dead_ones_partitions_with_rows() -> None:
    """Neither the survivor's own partitions, nor an empty commit, nor the dead agent's last word counts."""
    commits = [
        _commit(1, "b", 5, ZERO),  # before the death
        _commit(3, "a", 5, ZERO),  # the dead agent's commit was on its way
        _commit(4, "b", 5, ONE),  # its own partition
        _commit(5, "b", 0, ZERO),  # no rows
        _commit(6, "b", 5, ZERO, ONE),
    ]
    found = find_takeover(commits, dead="a", owned=frozenset({ZERO}), since=2)
    assert found is commits[4]
    assert find_takeover(commits[:4], dead="a", owned=frozenset({ZERO}), since=2) is None


def test_lag_is_what_was_produced_and_is_not_yet_committed() -> None:
    """The curve rises with each slice and falls with each commit."""
    commits = [_commit(2, "a", 4, ZERO), _commit(5, "a", 8, ZERO)]
    assert lag_over_time(commits, [(1.0, 10), (4.0, 12)]) == [(1.0, 10), (2, 6), (4.0, 8), (5, 0)]
