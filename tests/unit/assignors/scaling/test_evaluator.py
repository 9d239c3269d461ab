"""The evaluator against a source, a store and a publisher in memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from assignors.errors import PublishError, ScalingFileError, StoreError
from assignors.scaling import Observation, ScaledTopic, WorkersRecord
from assignors.scaling.decision_journal import journal_entries
from assignors.scaling.evaluator import Evaluator
from assignors.scaling.evaluator_settings import ScalingSettings
from assignors.scaling.state_store import MemoryStore
from tests.unit.assignors.scaling.evaluator_parts import NAME, Publisher, Source, write


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
