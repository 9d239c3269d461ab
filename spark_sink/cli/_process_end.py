"""Ends a command's process without the interpreter's teardown.

Arrow's threads outlive the interpreter. One of them may still release the last reference to delta-rs' file system,
which is a Python object. For this the thread needs the interpreter's lock. During the teardown CPython (before 3.14)
ends a thread that waits for the lock by unwinding its stack. If the unwinding meets a C++ destructor, the process ends
with SIGABRT, although the command has printed its whole answer. Therefore this exit does not wait for threads of
librdkafka and delta-rs.
"""

import atexit
import contextlib
import os
import sys


class ProcessEnd:
    """Ends the process before the teardown.

    Before that, all other threads except daemons are joined, and exit functions registered after `prepare` have run.
    """

    def __init__(self) -> None:
        self._code: int | None = None

    def prepare(self) -> None:
        """Register the exit function. Exit functions run in reverse order: it runs after those of later imports."""
        atexit.register(self._leave)

    def agree(self, code: object) -> None:
        """Set the exit code from that of `SystemExit`; the interpreter handles a code that is a text, and prints it."""
        self._code = code if isinstance(code, int) else 0 if code is None else None

    def _leave(self) -> None:
        if self._code is None:  # an error that the interpreter has reported, or a forked process
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # closed or missing; the command has flushed
                stream.flush()
        os._exit(self._code)
