"""The output of `azimuth autoscale` for a round."""

import json
import logging

import numpy as np
import pytest

from assignors.scaling import (
    NEVER,
    AgentsSettings,
    Capacity,
    Decision,
    Observation,
    Pipeline,
    Scaler,
    ScalingSettings,
    State,
    decide,
    window,
)
from spark_sink.cli.autoscale import _line_writer, _logged, _print_round, _publish_figures
from spark_sink.monitoring.live import ScalingFigures
from spark_sink.monitoring.logs.line_format import LineFormat, LogFormat
from spark_sink.monitoring.logs.process_log import process_log


def decision(topic: str, committed: int) -> Decision:
    """Of a topic of two partitions with a thousand records each."""

    def column(value: int) -> np.ndarray:
        return np.full(2, value, dtype=np.int64)

    seen = window([Observation(time_s=1e6, start=column(0), end=column(1000), committed=column(committed))])
    return decide(Scaler(policy=Capacity(), worker_rate=1000.0), seen, State(workers=1), topic)


def test_topics_without_a_commit_are_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    """A group that has not begun has hundreds of them: one line, some names; the others keep a line each."""
    made = [*(decision(f"flights.{n:03}", NEVER) for n in range(224)), decision("read", 900)]
    _print_round(made, apply=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first == (
        "workers kept, as the group has never committed: "
        "224 of 225 topics (flights.000, flights.001, flights.002 and 221 more)"
    )
    assert second.startswith("read: 1 worker kept: ")


def test_few_names_are_said_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is abbreviated where nothing is saved."""
    _print_round([decision("a", NEVER), decision("b", NEVER)], apply=True)
    assert capsys.readouterr().out == "workers kept, as the group has never committed: 2 of 2 topics (a, b)\n"


def test_a_group_that_was_not_observed_as_a_whole_keeps_its_agents(capsys: pytest.CaptureFixture[str]) -> None:
    """Of half of its topics half of the agents would follow, just when a cluster does not answer."""
    settings = ScalingSettings(
        bootstrap_servers="b:1",
        pipelines={"p": Pipeline(group="ingest", pattern=".*"), "q": Pipeline(group="other", pattern=".*")},
        agents={"ingest": AgentsSettings(topics=2)},
    )
    figures = ScalingFigures(30.0)
    _publish_figures(figures, settings, {"ingest": [decision(f"t{n}", 900) for n in range(7)], "other": []})
    assert {group: found["agents"] for group, found in figures.agents().items()} == {"ingest": 4}
    assert capsys.readouterr().out == "ingest: 4 agents needed: 7 seats of topics, 2 an agent\n"
    _publish_figures(figures, settings, {"other": [decision("t", 900)]})
    assert {group: found["agents"] for group, found in figures.agents().items()} == {"ingest": 4, "other": 1}
    assert capsys.readouterr().out.startswith("other: 1 agent needed: ")


@pytest.mark.parametrize(
    ("form", "once", "printed"),
    [(LogFormat.TEXT, True, True), (LogFormat.TEXT, False, False), (LogFormat.JSON, True, False)],
)
def test_an_autoscaler_that_keeps_running_logs_its_rounds_with_times(
    *,
    form: LogFormat,
    once: bool,
    printed: bool,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They were lines without a time between lines of the log, so no line said when a number had changed."""
    with caplog.at_level(logging.INFO, logger="azimuth.scaling"):
        _line_writer(form, once=once)("t: 1 -> 2 workers")
    assert capsys.readouterr().out == ("t: 1 -> 2 workers\n" if printed else "")
    assert [record.message for record in caplog.records] == ([] if printed else ["t: 1 -> 2 workers"])


def test_later_rounds_sum_up_the_topics_that_keep_their_workers(capsys: pytest.CaptureFixture[str]) -> None:
    """Hundreds of topics would fill the log with the same lines, four times a minute."""
    made = [decision("one", 900), decision("two", 900), decision("new", NEVER)]
    _print_round(made, apply=True, each=False)
    assert capsys.readouterr().out.splitlines() == [
        "workers kept, as the group has never committed: 1 of 3 topics (new)",
        "workers kept: 2 of 3 topics; `azimuth autoscale explain TOPIC` has the reasons",
    ]


def test_in_json_a_decision_is_a_line_of_the_log_with_its_topic(capsys: pytest.CaptureFixture[str]) -> None:
    """A log collector takes no lines of another form, and a decision on standard output would be one."""
    with process_log(LineFormat(LogFormat.JSON)):
        _print_round([decision("read", 900)], apply=True, write=_logged)
    said = capsys.readouterr()
    line = json.loads(said.err)
    assert (line["level"], line["logger"], line["topic"]) == ("info", "azimuth.scaling", "read")
    assert line["message"].startswith("read: 1 worker kept: ")
    assert not said.out
