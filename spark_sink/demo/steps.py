"""Shows the progress of the demo: bars on a terminal, elsewhere a line for each step."""

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class Steps(Progress):
    """Progress bars; without a terminal (a pipe, a log), each step prints a line when it begins.

    Args:
        console: receives the output.
    """

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description:<42}"), BarColumn(12), MofNCompleteColumn(), TimeElapsedColumn())
        super().__init__(*columns, console=console)
        self._began = time.monotonic()
        self._said: set[str] = set()

    def add_task(self, description: str, *arguments: Any, **more: Any) -> TaskID:  # noqa: ANN401 - rich's own
        """Begin a step."""
        self._say(description)
        return super().add_task(description, *arguments, **more)

    def update(self, task_id: TaskID, *arguments: Any, **more: Any) -> None:  # noqa: ANN401 - rich's own
        """Update a step; another description starts another step."""
        self._say(more.get("description"))
        super().update(task_id, *arguments, **more)

    def _say(self, description: str | None) -> None:
        if description is None or description in self._said or self.console.is_terminal:
            return
        self._said.add(description)
        self.console.print(f"{time.monotonic() - self._began:6.1f} s  {description}")
