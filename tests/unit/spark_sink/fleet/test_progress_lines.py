"""The progress log of an agent."""

from typing import Any

from spark_sink.fleet.periodic_reports import progress


def status(at: float, rows: int = 0, lag: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    """Of an agent with two topics."""
    known = {"s/x": 0, "s/y": 0} if lag is None else lag
    found = {"topics": ["s/x", "s/y"], "rows": rows, "lag": known, "problems": [], "standing": "member", "at": at}
    return {**found, **more}


def test_a_line_says_topics_rows_by_the_second_and_who_is_behind() -> None:
    """The rate is that of the time since the line before."""
    line = progress(status(100, 50), status(110, 250, {"s/x": 7, "s/y": 0}, lag_s={"s/x": 2.7, "s/y": 0.0}))
    assert line == "2 topics, 200 rows written (20/s), 7 behind (s/x 7), the oldest unread record is 3 s old"


def test_an_idle_agent_says_nothing() -> None:
    """Only the clock went on."""
    assert progress(status(100, 50), status(110, 50)) is None


def test_what_is_not_well_is_in_the_line() -> None:
    """Also where no row came."""
    line = progress(status(100, 50), status(110, 50, standing="unreachable", problems=["p"]))
    assert line == "2 topics, 0 rows written (0/s), 0 behind, unreachable, 1 problem"


def test_the_first_line_has_no_rate() -> None:
    """There is nothing to compare with."""
    assert progress({}, status(110, 50)) == "2 topics, 50 rows written, 0 behind"


def test_unknown_lag_is_never_called_zero() -> None:
    """A fresh agent, and one whose table cannot be created, has read nothing, and would log `0 behind`."""
    assert progress({}, status(110, 0, {})) == "2 topics, 0 rows written, lag unknown"
    line = progress({}, status(110, 0, {"s/x": 7}, lag_s={"s/x": 2.0}))
    assert line is not None
    assert line.startswith("2 topics, 0 rows written, 7 behind (s/x 7), lag of 1 topic unknown, ")


def test_an_agent_without_topics_says_nothing_of_lag() -> None:
    """It may have none because no broker has answered yet."""
    assert progress({}, status(110, 0, {}, topics=[])) == "0 topics, 0 rows written"


def test_lag_that_becomes_known_is_logged() -> None:
    """Also if it is zero."""
    line = progress(status(100, 0, {}), status(110, 0))
    assert line == "2 topics, 0 rows written (0/s), 0 behind"
