"""Ends a member in a thread of its own, which Ctrl-C does not interrupt."""

import threading
from collections.abc import Callable


class EndingThread:
    """Runs the end of a member once.

    Contract: Ctrl-C interrupts only the wait for the end. A later call waits for the same end.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._turn = threading.Lock()
        self._runs_in: int | None = None
        self._done = False

    def here(self) -> bool:
        """Whether the call comes from the end itself."""
        return self._runs_in == threading.get_ident()

    def run(self, end: Callable[[], None]) -> None:
        """Run this unless an earlier call has run its own, and wait for the end.

        Args:
            end: its error is raised here.
        """
        errors: list[BaseException] = []

        def once() -> None:
            with self._turn:
                if self._done:
                    return
                self._runs_in = threading.get_ident()
                try:
                    end()
                except BaseException as error:  # noqa: BLE001 -- raised in the thread that waits
                    errors.append(error)
                finally:
                    self._runs_in, self._done = None, True

        if self._done:
            return
        thread = threading.Thread(target=once, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends, and starts no thread
            once()
        else:
            thread.join()
        if errors:
            raise errors[0]
