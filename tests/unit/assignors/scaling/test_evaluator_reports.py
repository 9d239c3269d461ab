"""What the evaluator reports: alerts, the journal, news for followers."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from assignors.scaling import NEVER, alerts
from assignors.scaling.decision_journal import DecisionJournal, explain_entry, journal_entries
from assignors.scaling.evaluator import Evaluator
from assignors.scaling.evaluator_settings import ScalingSettings
from assignors.scaling.state_store import MemoryStore
from tests.unit.assignors.scaling.evaluator_parts import Publisher, Source, write


def test_a_hook_that_fails_keeps_no_other_from_being_told(settings: ScalingSettings) -> None:
    """A webhook may be down."""
    source, told = Source(), list[Mapping[str, Any]]()
    source.gone = True

    def broken(_: Mapping[str, Any]) -> None:
        raise OSError("down")

    evaluator = Evaluator(settings, source, MemoryStore())
    evaluator.alert([broken, told.append])
    evaluator.round()
    evaluator.close()
    assert len(told) == 1


def test_no_round_waits_for_a_hook_that_hangs(settings: ScalingSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook once delayed a round by its timeout at each alert; others get alerts meanwhile, and the end is limited."""
    monkeypatch.setattr(alerts, "_CLOSE_S", 0.05)
    released, other, told = threading.Event(), threading.Event(), list[Mapping[str, Any]]()

    def hanging(message: Mapping[str, Any]) -> None:
        released.wait(60)
        told.append(message)

    source = Source()
    evaluator = Evaluator(settings, source, MemoryStore())
    evaluator.alert([hanging, lambda _: other.set()])
    try:
        source.silent = True
        assert evaluator.round() == []
        assert other.wait(20)
        source.silent = False
        assert len(evaluator.round()) == 1
        evaluator.close()
        assert not told
    finally:
        released.set()


def test_a_finding_of_many_topics_is_told_once(settings: ScalingSettings) -> None:
    """A group that never committed has hundreds of such topics: one message that names some, and lists them all."""
    source, told = Source(), list[Mapping[str, Any]]()
    source.names = [f"flights.{n:03}" for n in range(224)]
    source.committed, source.leaving = NEVER, 0.0
    evaluator = Evaluator(settings, source, MemoryStore())
    evaluator.alert([told.append])
    for _ in range(3):
        evaluator.round()
    evaluator.close()
    (message,) = [one for one in told if one["kind"] == "uncommitted"]
    assert message["text"].startswith("224 topics (flights.000, flights.001, flights.002 and 221 more) have partitions")
    assert message["topics"] == source.names


def test_every_decision_can_be_explained(settings: ScalingSettings) -> None:
    """With the sentence of the policy and the figures it had."""
    source = Source()
    source.committed = NEVER
    evaluator = Evaluator(settings, source, MemoryStore())
    evaluator.round()
    with settings.journal.open("a") as file:
        file.write('{"cut off')
    (line,) = journal_entries(settings.journal, "flights")
    text = explain_entry(line)
    assert "records behind in 8 of 8 partitions" in text


@pytest.mark.parametrize(
    ("after", "applied", "says"),
    [(1, False, "1 kept"), (1, True, "1 kept"), (3, True, "1 -> 3"), (3, False, "1 -> 3  (not published)")],
)
def test_only_a_change_that_was_not_published_is_marked(
    settings: ScalingSettings,
    after: int,
    applied: bool,  # noqa: FBT001 -- a column of the table
    says: str,
) -> None:
    """A number that is kept is not published again: it was marked as a dry run, also with --apply."""
    Evaluator(settings, Source(), MemoryStore()).round()
    (line,) = journal_entries(settings.journal, "flights")
    first = explain_entry({**line, "before": 1, "workers": after, "applied": applied}).splitlines()[0]
    assert first.endswith(says)


@pytest.mark.parametrize("away", ["/dev/full", "/nowhere/at/all.jsonl"], ids=["full disk", "no folder"])
def test_scaling_goes_on_where_the_journal_cannot_be_written(tmp_path: Path, away: str) -> None:
    """A full disk once stopped the decisions of all topics but the first; it is reported, and decisions continue."""
    file = write(tmp_path / "s.toml", group="ingest", pattern=".*", worker_rate=1000.0)
    file.write_text(file.read_text().replace(f"{tmp_path}/decisions.jsonl", away))
    source, publisher, told = Source(), Publisher(), list[Mapping[str, Any]]()
    source.names = ["t0", "t1", "t2"]
    evaluator = Evaluator(ScalingSettings.load(file), source, MemoryStore(), publisher)
    evaluator.alert([told.append])
    for _ in range(3):
        assert len(evaluator.round()) == 3
    evaluator.close()
    assert [name.topic for name, _ in publisher.published] == source.names
    assert [message["kind"] for message in told] == ["journal"]


def test_the_journal_has_a_bound_and_keeps_the_newest(tmp_path: Path) -> None:
    """It grew by 0.7 GB a day with 300 topics; a truncated line does not affect other lines."""
    file = tmp_path / "j.jsonl"
    journal = DecisionJournal(file, 10_000)
    for number in range(1000):
        journal.append({"topic": "t", "number": number, "text": "x" * 50})
        if number == 995:
            with file.open("ab") as cut:
                cut.write(b'{"topic": "t", "num')
    assert sum(one.stat().st_size for one in tmp_path.iterdir()) < 21_000
    found = [line["number"] for line in journal_entries(file, "t")]
    assert found == list(range(found[0], 1000))
    assert len(found) > 100


def test_followers_are_told_once_in_each_round_that_published(settings: ScalingSettings) -> None:
    """Not for each of hundreds of topics, nor in rounds without a change."""
    source, told = Source(), list[int]()
    source.names = ["flights", "more", "others"]
    publisher = Publisher()
    evaluator = Evaluator(settings, source, MemoryStore(), publisher)
    evaluator.announce(lambda: told.append(len(publisher.published)))
    for _ in range(4):
        evaluator.round()
    assert told == [3], "after the last number of the round"
