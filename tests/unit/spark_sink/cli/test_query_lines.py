"""Rows of `azimuth query`: JSON, one a line, or a table for people."""

import json
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_sink.cli.query import _line, _show


def _refused(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


def test_every_line_is_json() -> None:
    """Python writes NaN and Infinity as words that parsers of other languages refuse."""
    row = {"mean": float("nan"), "most": [float("inf"), 1.5], "of": {"x": float("-inf")}, "raw": b"\xff", "n": None}
    read = json.loads(_line(row), parse_constant=_refused)
    assert read == {"mean": "nan", "most": ["inf", 1.5], "of": {"x": "-inf"}, "raw": "\\xff", "n": None}


def test_a_sum_of_integers_is_a_number() -> None:
    """DuckDB's sum of a bigint column is an integer of 128 bits, which is a decimal in Arrow; cents stay text."""
    assert json.loads(_line({"sum": Decimal(604450), "price": Decimal("1.50")})) == {"sum": 604450, "price": "1.50"}


def _shown(values: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> list[str]:
    found = pa.table(values)
    _show(pa.RecordBatchReader.from_batches(found.schema, found.to_batches()))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_row_too_wide_for_a_table_has_a_line_for_each_column(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twenty columns side by side in 80 had two letters each, so no value could be read."""
    monkeypatch.setenv("COLUMNS", columns)
    values = {f"column_{number}": [f"value-{number}-of-{row}" for row in (1, 2)] for number in range(20)}
    lines = _shown(values, capsys)
    expected = []
    for row in (1, 2):
        expected += [["row", f"{row}"], *([f"column_{number}", f"value-{number}-of-{row}"] for number in range(20))]
    assert [line.split() for line in lines] == expected
    assert max(map(len, lines)) <= int(columns)


def test_rows_that_fit_are_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A table is easier to compare, up to the last column of the terminal; a result without rows shows its columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert _shown({"a": ["x" * 39, "z"], "b": ["y" * 40, "z"]}, capsys)[0].split() == ["a", "b"]
    assert _shown({"a": ["x" * 40, "z"], "b": ["y" * 40, "z"]}, capsys)[0].split() == ["row", "1"]
    assert _shown({f"column_{number}": [] for number in range(9)}, capsys)[0].split()[0] == "column_0"


def test_a_value_longer_than_a_line_stays_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record's JSON is folded beside its column's name, and no letter of it is lost."""
    monkeypatch.setenv("COLUMNS", "80")
    value = "".join(f"{number:04}" for number in range(100))
    lines = _shown({"topic": ["flights"], "value": [value]}, capsys)
    assert "".join(line[len("topic ") :] for line in lines[2:]) == value
