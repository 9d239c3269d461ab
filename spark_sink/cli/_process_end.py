"""How a command's process ends: without the interpreter's teardown.

Arrow's threads outlive the interpreter. One of them may still release the last reference to delta-rs' file system,
which is a Python object, and needs the interpreter's lock for that. During the teardown CPython (before 3.14) ends a
thread that waits for the lock by unwinding its stack; where that meets a C++ destructor, the process ends with
SIGABRT, although the command has printed its whole answer. Threads of librdkafka and delta-rs that are still running
are no longer waited for.
"""

import atexit
import contextlib
import os
import sys


class ProcessEnd:
    """Ends the process before the teardown.

    All other threads except daemons are joined by then, and exit functions registered after `prepare` have run.
    """

    def __init__(self) -> None:
        self._code: int | None = None

    def prepare(self) -> None:
        """Register it. Exit functions run in reverse order, so this one runs after those of later imports."""
        atexit.register(self._leave)

    def agree(self, code: object) -> None:
        """Set the exit code, as `SystemExit` has it; the interpreter handles a code that is a text, and prints it."""
        self._code = code if isinstance(code, int) else 0 if code is None else None

    def _leave(self) -> None:
        if self._code is None:  # an error that the interpreter has reported, or a forked process
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none; the command has flushed
                stream.flush()
        os._exit(self._code)
