"""The current workers, and the effect of an invalid file."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from assignors import WorkersError
from assignors.fleet import FleetTopic, FleetWorkers
from assignors.scaling import NewsListener, ScaledTopic, WorkersFeed, WorkersRecord
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
        "[" * 100_000,
        '{"t":' * 100_000,
    ],
    ids=lambda text: text[:12],
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


def test_what_is_no_file_or_too_large_is_an_expected_error_at_once(tmp_path: Path) -> None:
    """An agent that waits for the writer of a pipe, or reads a disk into its memory, follows no view."""
    folder, pipe, large = tmp_path / "folder", tmp_path / "pipe", tmp_path / "large"
    folder.mkdir()
    os.mkfifo(pipe)
    large.write_text("{}")
    os.truncate(large, 1 << 40)
    for place in (folder, pipe, Path("/dev/zero"), large):
        with pytest.raises(WorkersError, match="need a JSON object"):
            read_overrides(place)


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


class Feed:
    """A workers topic with these records."""

    def __init__(self, records: dict[ScaledTopic, WorkersRecord]) -> None:
        self.records = records
        self.reads: list[bool] = []

    def refresh(self, _timeout_s: float, *, to_end: bool) -> None:
        """Nothing to read; count."""
        self.reads.append(to_end)

    def workers(self, cluster: str, group: str) -> dict[str, int]:
        """As in `WorkersFeed`."""
        return {n.topic: r.workers for n, r in self.records.items() if (n.cluster, n.group) == (cluster, group)}


@pytest.mark.parametrize("by_volume", [True, False])
def test_published_rates_are_weights_if_the_balance_is_by_volume(by_volume: bool) -> None:  # noqa: FBT001
    """Of all clusters, also unknown ones, because agents compare them; those of the configuration come first."""
    feed = Feed(
        {
            ScaledTopic("c", "f", "t"): WorkersRecord(workers=2, at_ms=1, records_per_s=5.0),
            ScaledTopic("c", "f", "u"): WorkersRecord(workers=1, at_ms=1),
            ScaledTopic("c", "other", "v"): WorkersRecord(workers=1, at_ms=1, records_per_s=7.0),
        }
    )
    configured = FleetWorkers(weights={"s/t": 9.0} if by_volume else {})
    found = WorkersNow(configured, "f", None, cast("WorkersFeed", feed), by_volume=by_volume)([])
    assert found.weights == ({"c/t": 5.0, "s/t": 9.0} if by_volume else {})
    assert found.weight(FleetTopic("c", "id", "t", "s")) == (9.0 if by_volume else None)


def test_news_of_the_topic_are_read_at_once_and_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks; the agent waits for a record that the client has not fetched yet."""
    monkeypatch.setattr("spark_sink.fleet.workers_in_force.time.monotonic", lambda: 100.0)
    feed = Feed({})
    calls: list[Callable[[], None]] = []

    class Listener:
        def start(self) -> None:
            """Listen."""

    def listen(heard: Callable[[], None]) -> NewsListener:
        calls.append(heard)
        return cast("NewsListener", Listener())

    workers = WorkersNow(FleetWorkers(), "f", None, cast("WorkersFeed", feed), listen=listen)
    workers([])
    workers([])
    assert (feed.reads, len(calls)) == ([True], 1)
    feed.records[ScaledTopic("c", "f", "t")] = WorkersRecord(workers=2, at_ms=1)
    calls[0]()
    assert workers([]).published == {"c/t": 2}
    assert feed.reads == [True, True]
    workers([])
    assert feed.reads == [True, True], "each message is read once"


def test_an_override_of_a_file_for_no_topic_is_a_problem_once(tmp_path: Path) -> None:
    """No error, because the topic may be created later; but a mistyped name would have no effect in silence."""
    file = tmp_path / "overrides.json"
    file.write_text('{"t": 3, "home/t": 2, "flihgts": 2}')
    workers = WorkersNow(FleetWorkers(default=2), "f", file, None)([])
    topics = [FleetTopic("c", "1", "t", "home"), FleetTopic("d", "2", "t", "plant")]
    assert workers.unknown(topics, ["a"]) == ["override for 'flihgts': there is no such topic"]
