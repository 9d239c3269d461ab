"""Rows of `azimuth query --json`, one a line."""

import json
from decimal import Decimal

from spark_sink.cli.query import _line


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
