"""Progress of a step that may wait long, on standard error: a store that does not answer must not look like a hang."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

_FIRST_S: Final = 5.0
_EACH_S: Final = 10.0


@contextlib.contextmanager
def long_step(text: str, *, prints: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what a command waits for: with a spinner on a terminal, elsewhere as a line after 5 s and then every 10 s.

    Args:
        text: the step, as in "looking at demo.flights.raw".
        prints: the step prints lines, which a spinner would mix with its own.

    Yields:
        A function that changes the text.
    """
    step = _Step(text)
    with _spinner(step) if sys.stderr.isatty() and not prints else _lines(step):
        yield step.change


class _Step:
    """A step and since when it runs; both ways to show it read the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begin = time.monotonic()

    def change(self, text: str) -> None:
        """Replace the text."""
        self._text = text

    def __str__(self) -> str:
        return f"{self._text} ({time.monotonic() - self._begin:.0f} s)"


@contextlib.contextmanager
def _spinner(step: _Step) -> Iterator[None]:
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    def shown() -> Spinner:
        return Spinner("dots", Text(str(step)))

    # Redirection would send the result, which belongs to standard output, to standard error.
    with Live(
        console=Console(stderr=True),
        get_renderable=shown,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield


@contextlib.contextmanager
def _lines(step: _Step) -> Iterator[None]:
    ended = threading.Event()

    def say() -> None:
        pause = _FIRST_S
        while not ended.wait(pause):
            sys.stderr.write(f"azimuth: {step}\n")
            sys.stderr.flush()
            pause = _EACH_S

    speaker = threading.Thread(target=say, name="long-step", daemon=True)
    speaker.start()
    try:
        yield
    finally:
        ended.set()
        speaker.join()
