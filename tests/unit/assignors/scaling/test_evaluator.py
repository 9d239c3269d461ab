"""The evaluator against a source, a store and a publisher in memory."""

import json
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assignors.errors import LagError, PublishError, ScalingFileError, StoreError
from assignors.scaling import NEVER, UNKNOWN, Observation, ScaledTopic, WorkersRecord, alerts
from assignors.scaling.decision_journal import DecisionJournal, explain_entry, journal_entries
from assignors.scaling.evaluator import Evaluator
from assignors.scaling.evaluator_settings import ScalingSettings
from assignors.scaling.kafka_lag import TopicFacts
from assignors.scaling.state_store import MemoryStore

NAME = ScaledTopic("cluster", "ingest", "flights")


class Source:
    """Topics with rates of arrivals and reads that a test changes; time advances at each observation."""

    def __init__(self) -> None:
        self.partitions, self.arriving, self.leaving = 8, 100.0, 100.0
        self.now_s, self.end, self.committed = 1e6, 1e6, 1e6
        self.gone = self.silent = self.unknown = False
        self.names = ["flights"]

    def cluster_id(self) -> str:
        """As in `LagSource`."""
        return "cluster"

    def topics(self, names: Collection[str], pattern: str | None) -> dict[str, TopicFacts]:  # noqa: ARG002 -- the contract's
        """As in `LagSource`."""
        if self.silent:
            raise LagError("no broker answers")
        facts = TopicFacts(partitions=self.partitions, retention_s=None)
        return {} if self.gone else dict.fromkeys(self.names, facts)

    def observe(self, group: str, topics: Mapping[str, TopicFacts]) -> dict[str, Observation]:  # noqa: ARG002 -- as above
        """As in `LagSource`."""
        self.now_s += 30.0
        self.end += 30.0 * self.arriving
        self.committed = min(self.committed + 30.0 * self.leaving, self.end)

        def column(value: float) -> Any:  # noqa: ANN401
            return np.full(self.partitions, UNKNOWN if self.unknown else int(value), dtype=np.int64)

        one = Observation(time_s=self.now_s, start=column(0), end=column(self.end), committed=column(self.committed))
        return dict.fromkeys(topics, one)


class Publisher:
    """Stores published numbers."""

    def __init__(self) -> None:
        self.published: list[tuple[ScaledTopic, WorkersRecord | None]] = []

    def publish(self, name: ScaledTopic, record: WorkersRecord | None) -> None:
        """As in the contract."""
        self.published.append((name, record))


def write(path: Path, **pipeline: object) -> Path:
    """A settings file with one pipeline."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in pipeline.items()]
    head = f'bootstrap_servers = "localhost:1"\njournal = "{path.parent}/decisions.jsonl"\n[pipelines.flights]\n'
    path.write_text(head + "\n".join(lines))
    return path


@pytest.fixture
def settings(tmp_path: Path) -> ScalingSettings:
    """One pipeline of one topic."""
    file = write(tmp_path / "s.toml", group="ingest", topics=["flights"], worker_rate=1000.0, max_poll_records=500)
    return ScalingSettings.load(file)


def test_a_dry_run_publishes_nothing_and_says_what_it_would(settings: ScalingSettings) -> None:
    """After any number of decisions, it continues from the number in force."""
    source = Source()
    source.arriving, source.leaving = 400.0, 120.0
    evaluator = Evaluator(settings, source, MemoryStore())
    made = [decision for _ in range(20) for decision in evaluator.round()]
    assert {decision.before for decision in made} == {1}
    assert made[-1].workers > 3
    assert not any(line["applied"] for line in journal_entries(settings.journal, "flights"))


def test_what_is_applied_is_published_once_and_goes_on(settings: ScalingSettings) -> None:
    """The first number, then only changes, with the settings for workers."""
    source, publisher = Source(), Publisher()
    evaluator = Evaluator(settings, source, MemoryStore(), publisher)
    for _ in range(5):
        evaluator.round()
    assert [record and record.workers for _, record in publisher.published] == [1]
    source.arriving, source.leaving = 400.0, 120.0
    for _ in range(12):
        evaluator.round()
    numbers = [record.workers for _, record in publisher.published if record]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] > 3
    name, record = publisher.published[-1]
    assert name == NAME
    assert record is not None
    assert record.max_poll_records == 500


def test_a_topic_that_is_deleted_loses_its_number_and_is_reported(settings: ScalingSettings) -> None:
    """Once, not every round."""
    source, publisher, told = Source(), Publisher(), list[Mapping[str, Any]]()
    evaluator = Evaluator(settings, source, MemoryStore(), publisher)
    evaluator.alert([told.append])
    evaluator.round()
    source.gone = True
    for _ in range(2):
        evaluator.round()
    assert publisher.published[-1] != (NAME, None), "a broker that has just started lists too few"
    for _ in range(3):
        evaluator.round()
    evaluator.close()
    assert publisher.published[-1] == (NAME, None)
    assert len(publisher.published) == 2
    assert [message["kind"] for message in told] == ["missing"]


def test_brokers_that_do_not_answer_change_nothing(settings: ScalingSettings) -> None:
    """The round is reported, the number stays, and the next round asks again."""
    source, publisher, told = Source(), Publisher(), list[Mapping[str, Any]]()
    evaluator = Evaluator(settings, source, MemoryStore(), publisher)
    evaluator.alert([told.append])
    evaluator.round()
    source.silent = True
    assert evaluator.round() == []
    source.silent, source.unknown = False, True
    (made,) = evaluator.round()
    assert made.workers == made.before
    evaluator.close()
    assert [message["kind"] for message in told] == ["error", "unknown"]
    assert len(publisher.published) == 1


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


def test_a_dry_run_writes_to_nothing_but_its_journal(settings: ScalingSettings, tmp_path: Path) -> None:
    """Neither the settings file nor its folder changes, and no publisher is created."""
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    source = Source()
    source.arriving, source.leaving = 400.0, 120.0
    evaluator = Evaluator(settings, source, MemoryStore())
    for _ in range(20):
        evaluator.round()
    after = {file: file.read_bytes() for file in tmp_path.iterdir() if file != settings.journal}
    assert after == before


@pytest.mark.parametrize("jump_s", [86_400.0, 400 * 86_400.0, -400 * 86_400.0], ids=["a day", "a year", "a year back"])
def test_no_jump_of_the_clock_changes_the_workers(settings: ScalingSettings, jump_s: float) -> None:
    """Ahead and back, and back to the right time again: the load is the same all along, and so is the number."""
    source = Source()
    evaluator = Evaluator(settings, source, MemoryStore(), Publisher())
    for jump in (0.0, jump_s, -jump_s):
        source.now_s += jump
        for _ in range(30):
            (made,) = evaluator.round()
            assert made.workers == 1
    source.arriving, source.leaving = 400.0, 120.0
    assert [decision.workers for _ in range(30) for decision in evaluator.round()][-1] > 3, "and it still decides"


def test_a_restart_goes_on_from_the_numbers_in_force(settings: ScalingSettings) -> None:
    """They are read from the workers topic, not guessed."""
    evaluator = Evaluator(settings, Source(), MemoryStore(), Publisher())
    evaluator.follow({NAME: WorkersRecord(workers=4, at_ms=1)})
    (made,) = evaluator.round()
    assert made.before == 4


def test_a_clock_that_jumps_back_begins_anew(settings: ScalingSettings) -> None:
    """No absurd rate, no absurd number."""
    source = Source()
    evaluator = Evaluator(settings, source, MemoryStore(), Publisher())
    for _ in range(10):
        evaluator.round()
    source.now_s -= 86_400.0
    (made,) = evaluator.round()
    assert made.workers == 1
    assert len(made.view.window.times_s) == 1


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


@pytest.mark.parametrize(
    ("pipeline", "named"),
    [
        ({"group": "g", "topics": ["t"], "min_workers": 5, "max_workers": 3}, "no number fits"),
        ({"group": "g", "topics": ["t"], "policy": "magic"}, "pipelines.flights.policy"),
        ({"group": "g", "topics": ["t"], "slo_s": 5}, "slo_s"),
        ({"group": "g", "topics": ["t"], "minimum": 5}, "minimum"),
        ({"group": "g"}, "topics or a pattern"),
        ({"topics": ["t"]}, "group is missing"),
        ({"group": "g", "pattern": "("}, "pattern"),
        ({"group": "g", "topics": ["t"], "step_up": 0}, "step_up"),
    ],
)
def test_settings_that_make_no_sense_are_named(tmp_path: Path, pipeline: dict[str, object], named: str) -> None:
    """The message has the file and the setting."""
    with pytest.raises(ScalingFileError, match=named) as caught:
        ScalingSettings.load(write(tmp_path / "bad.toml", **pipeline))
    assert "bad.toml" in str(caught.value)


def scaled(settings: ScalingSettings, source: Source, publisher: Publisher) -> tuple[Evaluator, int]:
    """Return an evaluator whose topic has several workers and a steady load, and the number of workers."""
    evaluator = Evaluator(settings, source, MemoryStore(), publisher)
    source.arriving, source.leaving = 400.0, 120.0
    for _ in range(16):
        evaluator.round()
    source.leaving = 400.0
    (made,) = evaluator.round()
    assert made.workers > 3
    return evaluator, made.workers


@pytest.mark.parametrize("rounds", [1, 2, 3, 7], ids="{} rounds without the topic".format)
def test_a_number_is_in_force_again_after_the_topic_was_away(settings: ScalingSettings, rounds: int) -> None:
    """It was taken back after one round, while the state kept it: 8 stayed 8 and was never published again."""
    source, publisher = Source(), Publisher()
    evaluator, _ = scaled(settings, source, publisher)
    source.gone = True
    for _ in range(rounds):
        evaluator.round()
    source.gone = False
    for _ in range(4):
        (made,) = evaluator.round()
    _, last = publisher.published[-1]
    assert last is not None
    assert last.workers == made.workers
    assert (None in [record for _, record in publisher.published]) == (rounds >= 3)


@pytest.mark.parametrize("theirs", [None, 2, 11], ids=["taken back", "lower", "higher"])
def test_a_number_that_another_publishes_counts_before_the_state(settings: ScalingSettings, theirs: int | None) -> None:
    """A person or a paused evaluator published: decisions continue from the number in force."""
    source, publisher = Source(), Publisher()
    evaluator, _ = scaled(settings, source, publisher)
    now = dict(publisher.published)
    now[NAME] = None if theirs is None else WorkersRecord(workers=theirs, at_ms=1)
    evaluator.read_back(lambda: {name: record for name, record in now.items() if record})
    (made,) = evaluator.round()
    assert made.before == (theirs or 1)
    _, last = publisher.published[-1]
    assert last is not None
    assert last.workers == made.workers


def test_nothing_is_decided_while_the_numbers_in_force_cannot_be_read(settings: ScalingSettings) -> None:
    """Or a number might be published over a newer one; the next round asks again."""
    source, publisher, told = Source(), Publisher(), list[Mapping[str, Any]]()
    evaluator = Evaluator(settings, source, MemoryStore(), publisher)
    evaluator.alert([told.append])
    away = [True]

    def numbers() -> Mapping[ScaledTopic, WorkersRecord]:
        if away[0]:
            raise PublishError("no broker answers")
        return {}

    evaluator.read_back(numbers)
    assert evaluator.round() == evaluator.round() == []
    away[0] = False
    assert len(evaluator.round()) == 1
    evaluator.close()
    assert [message["kind"] for message in told] == ["error"]


def test_only_the_evaluator_that_leads_publishes(settings: ScalingSettings) -> None:
    """Two evaluators with `--apply` published in turn; the standby takes over from the number in force."""
    source, one, two = Source(), Publisher(), Publisher()
    first, number = scaled(settings, source, one)
    second = Evaluator(settings, source, MemoryStore(), two)
    leader = ["first"]
    first.elect(lambda _: leader[0] == "first")
    second.elect(lambda _: leader[0] == "second")
    second.read_back(lambda: {name: record for name, record in dict(one.published + two.published).items() if record})
    for _ in range(3):
        (made,) = second.round()
        assert made.before == number
    assert not two.published
    leader[0] = "second"
    before = list(one.published)
    one.published.append((NAME, None))  # a person takes the number back
    first.round()
    second.round()
    assert [name for name, _ in two.published] == [NAME]
    assert one.published == [*before, (NAME, None)]


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


def test_rates_are_published_only_if_the_pipeline_asks_for_them(tmp_path: Path) -> None:
    """Once they are known, with the number; and then again only if they change."""
    for wanted in (True, False):
        file = write(tmp_path / "s.toml", group="ingest", topics=["flights"], worker_rate=1e4, publish_rates=wanted)
        source, publisher = Source(), Publisher()
        evaluator = Evaluator(ScalingSettings.load(file), source, MemoryStore(), publisher)
        for _ in range(60):
            evaluator.round()
        rates = [record and record.records_per_s for _, record in publisher.published]
        # Until the window is ten minutes long, no rate is known.
        assert rates == ([None, 800.0] if wanted else [None])


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


def test_a_store_that_is_away_changes_no_number_and_is_reported_once(settings: ScalingSettings) -> None:
    """Redis killed: what is published stays, and decisions continue when it is back."""

    class Away(MemoryStore):
        gone = False

        def recent(self, key: str) -> list[Observation]:
            if self.gone:
                raise StoreError("Redis at redis://h:1/0 does not answer")
            return super().recent(key)

    store, source, publisher, told = Away(), Source(), Publisher(), list[Mapping[str, Any]]()
    evaluator = Evaluator(settings, source, store, publisher)
    evaluator.alert([told.append])
    evaluator.round()
    published = len(publisher.published)
    store.gone, source.arriving, source.leaving = True, 400.0, 120.0
    for _ in range(4):
        assert evaluator.round() == []
    assert len(publisher.published) == published
    store.gone = False
    for _ in range(12):
        evaluator.round()
    evaluator.close()
    last = publisher.published[-1][1]
    assert last is not None
    assert last.workers > 3
    assert [message["kind"] for message in told].count("error") == 1
