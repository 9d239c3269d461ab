"""The comparison of benchmarks' figures with their bars."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.bars import BARS, Bar, judge, main

SPEED = Bar("producer", "produce/ratio/global *", least=0.95)
REPORTS: dict[str, dict[str, Any]] = {
    "producer": {
        "produce": {"machine": {}, "ratio": {"global null": 0.95, "global key": 0.94, "local null": 0.1}},
        "faults_a": {"holds": True},
        "faults_b": {"holds": False},
    }
}


@pytest.mark.parametrize(
    ("bar", "verdicts"),
    [
        (SPEED, {"producer/produce/ratio/global null": True, "producer/produce/ratio/global key": False}),
        (
            Bar("producer", "faults_*/holds", least=1),
            {"producer/faults_a/holds": True, "producer/faults_b/holds": False},
        ),
        (Bar("producer", "produce/ratio/local null", least=0, most=0.1), {"producer/produce/ratio/local null": True}),
        (Bar("producer", "produce/ratio/local null", most=0.09), {"producer/produce/ratio/local null": False}),
        (Bar("producer", "produce/rates/*", least=1), {"producer/produce/rates/*": False}),
        (Bar("producer", "produce/ratio", least=1), {"producer/produce/ratio": False}),
        (Bar("producer", "skew/ratio", least=1), {"producer/skew/ratio": None}),
        (Bar("fleet", "decision/ms", most=1), {"fleet/decision/ms": None}),
    ],
    ids=["a pattern", "sections", "both ends", "too much", "no figure", "no number", "no section", "no report"],
)
def test_a_figure_is_in_the_range_of_its_bar_or_missed(bar: Bar, verdicts: dict[str, bool | None]) -> None:
    """A section that lacks its figure fails, or a figure that is renamed would pass for ever."""
    assert {one.place: one.holds for one in judge([bar], REPORTS)} == verdicts


def test_each_figure_is_printed_beside_its_bar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A number without the bar says nothing to a reader."""
    (tmp_path / "producer.json").write_text(json.dumps(REPORTS["producer"]))
    assert main(tmp_path, [SPEED, Bar("fleet", "decision/ms", most=100)]) == 1
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["ok", "0.95", ">=", "0.95", "producer/produce/ratio/global", "null"],
        ["MISSED", "0.94", ">=", "0.95", "producer/produce/ratio/global", "key"],
        ["not", "measured", "-", "<=", "100", "fleet/decision/ms"],
    ]
    assert main(tmp_path, [Bar("producer", "faults_a/holds", least=1)]) == 0


def test_a_check_of_all_fails_on_what_was_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A benchmark that is never run would keep its bar for ever."""
    (tmp_path / "producer.json").write_text(json.dumps(REPORTS["producer"]))
    bars = [Bar("producer", "faults_a/holds", least=1), Bar("fleet", "decision/ms", most=100)]
    assert main(tmp_path, bars) == 0
    assert main(tmp_path, bars, every=True) == 1
    assert capsys.readouterr().err == "1 of 2 were not measured\n"
    assert main(tmp_path, bars[:1], every=True) == 0


def test_a_check_of_nothing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check that passes because no benchmark ran would be worth nothing."""
    assert main(tmp_path) == 1
    assert "make bench" in capsys.readouterr().err


def test_each_bar_has_an_end() -> None:
    """A bar without one holds for every figure."""
    assert all(bar.text for bar in BARS)
