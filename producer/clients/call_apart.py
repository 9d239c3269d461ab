"""Calls of a confluent-kafka client that an application may cause inside one of its callbacks.

While `poll` or `flush` runs callbacks, confluent-kafka (2.16.1) keeps one state for each client and thread. Another
call that releases the interpreter's lock, such as `list_topics`, removes this state, and the next callback of the same
`poll` then aborts the process ("Assertion `cs != NULL' failed"). `produce` keeps the lock and is safe there.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def call_apart(function: Callable[[], T]) -> T:
    """Call a function in a thread of its own, and wait for it.

    At the interpreter's end, when no thread can start any more, it is called in this thread.

    Returns:
        The function's result; an error of the function is raised here.
    """
    if sys.is_finalizing():
        return function()
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            outcome.set_exception(error)

    # A daemon: a request without an answer does not delay the end of a program whose wait was interrupted.
    thread = threading.Thread(target=run, name="azimuth-first-leaders", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # in an exit handler (Python 3.12 on), or too many threads
        return function()
    return outcome.result()
