"""Forks a test's process, and reports what its child finds."""

import os
import signal
import time
from collections.abc import Callable

_CHILD_S = 20.0


def in_child(call: Callable[[], object]) -> str:
    """Return the result or the error of a call in a forked child as text; "hangs" if the child does not end."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, f"{call()}".encode())
        except BaseException as error:  # noqa: BLE001 -- reported
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    ended = wait_for_child(child)
    with os.fdopen(reader, "rb") as answer:
        return answer.read().decode() if ended else "hangs"


def wait_for_child(child: int) -> bool:
    """Return whether the child ends by itself; kill it otherwise."""
    until = time.monotonic() + _CHILD_S
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
