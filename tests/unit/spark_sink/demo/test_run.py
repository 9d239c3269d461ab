"""The end of a demo after a signal, and its progress output."""

import io
import signal

import pytest
from rich.console import Console

from spark_sink.demo.run import Steps, _ended_by_signals


def test_an_interruption_that_the_client_lost_is_one_all_the_same() -> None:
    """confluent-kafka converts a signal handler's exception during a producer's callback into a SystemError."""

    def lose() -> None:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise SystemError("returned NULL without setting an exception")

    with pytest.raises(KeyboardInterrupt), _ended_by_signals():
        lose()


def test_a_system_error_that_nobody_asked_for_stays_one() -> None:
    """It is a defect, and its traceback is wanted."""
    with pytest.raises(SystemError, match="a defect"), _ended_by_signals():
        raise SystemError("a defect")


@pytest.mark.parametrize("terminal", [False, True])
def test_each_step_is_a_line_where_bars_cannot_move(*, terminal: bool) -> None:
    """A line for each description, when it begins; a terminal shows only the bars."""
    out = io.StringIO()
    with Steps(Console(file=out, force_terminal=terminal, width=100)) as steps:
        step = steps.add_task("agents start", total=2)
        steps.update(step, completed=1, description="waiting for the kill")
        steps.update(step, completed=2, description="waiting for the kill")
        said = out.getvalue()
    if terminal:
        assert " s  " not in said
    else:
        assert [line.split(" s  ")[1] for line in said.splitlines()] == ["agents start", "waiting for the kill"]
