"""An ingestion that is made in a thread while an agent joins its fleet."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from assignors.fleet import FleetTopic, Ingestion, Lane
from spark_sink.errors import OptionError
from spark_sink.fleet.later_ingestion import LaterIngestion
from tests.waiting import wait_until

Assigned = Mapping[Lane, frozenset[FleetTopic]]
ONE: Assigned = {Lane("s", 0): frozenset({FleetTopic("c", "1", "x", "s")})}


class Kept:
    """Keeps its calls."""

    def __init__(self) -> None:
        self.assigned: list[Assigned] = []
        self.closed = 0

    def assign(self, lanes: Assigned) -> None:
        """Keep them."""
        self.assigned.append(lanes)

    def problems(self) -> Sequence[str]:
        """One."""
        return ["it rains"]

    def figures(self) -> Mapping[str, Any]:
        """One."""
        return {"rows": 7}

    def close(self) -> None:
        """Count."""
        self.closed += 1


def _made_when(told: threading.Event, kept: Kept) -> Callable[[], Ingestion]:
    def make() -> Ingestion:
        assert told.wait(30)
        return kept

    return make


def test_topics_that_are_assigned_before_it_is_made_are_read() -> None:
    """Of several assignments the last one counts, and nothing is assigned if nothing was."""
    told, kept = threading.Event(), Kept()
    later = LaterIngestion(_made_when(told, kept))
    later.assign({})
    later.assign(ONE)
    assert not later.problems()
    told.set()
    wait_until(lambda: kept.assigned == [ONE])
    later.assign({})
    assert kept.assigned == [ONE, {}]
    assert (later.problems(), later.figures()) == (["it rains"], {"rows": 7})
    idle = Kept()
    LaterIngestion(lambda: idle).close()
    assert (idle.assigned, idle.closed) == ([], 1)


def test_figures_and_the_end_wait_until_it_is_made() -> None:
    """A status without rows looks like that of an agent that reads nothing; readers must not outlive the end."""
    told, kept = threading.Event(), Kept()
    later = LaterIngestion(_made_when(told, kept))
    found: list[object] = []
    asks = threading.Thread(target=lambda: found.append(later.figures()))
    ends = threading.Thread(target=later.close)
    for thread in (asks, ends):
        thread.start()
    assert (found, kept.closed) == ([], 0)
    told.set()
    for thread in (asks, ends):
        thread.join(30)
    assert (found, kept.closed) == ([{"rows": 7}], 1)


def test_an_error_ends_the_agent_and_is_raised_once() -> None:
    """The command reports it; the assignment of nothing at the end of the agent must not hide it."""
    failed = threading.Event()

    def make() -> Ingestion:
        raise OptionError("no such table")

    later = LaterIngestion(make, failed.set)
    assert failed.wait(30)
    with pytest.raises(OptionError, match="no such table"):
        later.assign({})
    later.assign({})
    assert later.figures() == {"alive": False}
    later.close()
