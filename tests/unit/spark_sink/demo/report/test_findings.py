"""The words agree with the numbers."""

import pytest

from spark_sink.demo.report.findings import money_per_tb, number, percent, size, verdict
from spark_sink.demo.report.run_record import Run


@pytest.mark.parametrize(
    ("values", "exactly_once", "words"),
    [
        pytest.param({"rows": 5, "expected_rows": 5, "missing": 0, "duplicates": 0}, True, "all 5 records", id="good"),
        pytest.param({"rows": 4, "missing": 1, "duplicates": 0}, False, "1 missing", id="hole"),
        pytest.param({"rows": 6, "missing": 0, "duplicates": 1}, False, "1 more than once", id="double"),
        pytest.param({"rows": 5, "expected_rows": 6, "missing": 0, "duplicates": 0}, False, "5 rows where 6", id="few"),
        pytest.param({"rows": 5, "missing": 0, "duplicates": 0, "values_differ": 2}, False, "2 with", id="values"),
        pytest.param({"rows": 5, "duplicates": 0}, None, "not verified", id="missing unknown"),
        pytest.param({"missing": 3}, False, "3 missing", id="a finding counts without the rest"),
        pytest.param({}, None, "not verified", id="nothing"),
    ],
)
def test_verdict_needs_every_count(values: dict[str, int], exactly_once: bool | None, words: str) -> None:  # noqa: FBT001 - a row's expectation
    """Exactly once is claimed only when rows, holes and doubles were counted, and all are right."""
    found = verdict(Run.parse(values))
    assert found.exactly_once is exactly_once
    assert words in found.text


@pytest.mark.parametrize(("killed", "words"), [(0, "table."), (1, "an agent"), (2, "2 agents"), (["a"], "an agent")])
def test_verdict_names_the_kill(killed: object, words: str) -> None:
    """The sentence fits any number of killed agents, given as a count or a list."""
    run = Run.parse({"rows": 1, "missing": 0, "duplicates": 0, "agents_killed": killed})
    assert words in verdict(run).text


def test_numbers_have_units_and_absence_has_words() -> None:
    """Nothing that was not measured reads like a zero."""
    assert (number(336776), number(9.14, " s", 1), number(None)) == ("336,776", "9.1 s", "not measured")
    assert (percent(2 / 3), percent(0.0), percent(None)) == ("66.7 %", "0.0 %", "not measured")
    assert (size(126_300_000), size(0), size(1500), size(None)) == ("126.3 MB", "0 B", "1.5 kB", "not measured")


def test_money_is_the_share_of_a_terabyte_at_the_price() -> None:
    """1 TB are 1,000 GB; two thirds of them at $0.01 are $6.67."""
    assert money_per_tb(2 / 3, 0.01) == "$6.67"
    assert money_per_tb(2 / 3, None) == money_per_tb(None, 0.01) == "not measured"
