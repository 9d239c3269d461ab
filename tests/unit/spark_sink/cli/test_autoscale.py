"""The output of `azimuth autoscale` for a round."""

import numpy as np
import pytest

from assignors.scaling import NEVER, Capacity, Decision, Observation, Scaler, State, decide, window
from spark_sink.cli.autoscale import _say


def decision(topic: str, committed: int) -> Decision:
    """Of a topic of two partitions with a thousand records each."""

    def column(value: int) -> np.ndarray:
        return np.full(2, value, dtype=np.int64)

    seen = window([Observation(time_s=1e6, start=column(0), end=column(1000), committed=column(committed))])
    return decide(Scaler(policy=Capacity(), worker_rate=1000.0), seen, State(workers=1), topic)


def test_topics_without_a_commit_are_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    """A group that has not begun has hundreds of them: one line, some names; the others keep a line each."""
    made = [*(decision(f"flights.{n:03}", NEVER) for n in range(224)), decision("read", 900)]
    _say(made, apply=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first == (
        "workers kept, as the group has never committed: "
        "224 of 225 topics (flights.000, flights.001, flights.002 and 221 more)"
    )
    assert second.startswith("read: 1 workers kept: ")


def test_few_names_are_said_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is abbreviated where nothing is saved."""
    _say([decision("a", NEVER), decision("b", NEVER)], apply=True)
    assert capsys.readouterr().out == "workers kept, as the group has never committed: 2 of 2 topics (a, b)\n"
