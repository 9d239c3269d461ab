"""The progress output of the demo."""

import io

import pytest
from rich.console import Console

from spark_sink.demo.steps import Steps


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
