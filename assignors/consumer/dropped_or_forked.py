"""The end of a consumer that its program does not close: dropped, or copied by a fork."""

import contextlib
import ctypes
import os
import weakref
from functools import partial
from typing import Any

from assignors.consumer.background_calls import start_thread
from assignors.consumer.commit_queue import CommitQueue
from assignors.consumer.fetching import Fetching
from assignors.consumer.rebalance_handling import Membership

_IN_USE: "weakref.WeakSet[Fetching]" = weakref.WeakSet()


def lifetime() -> object:
    """Return an object that is freed with its only owner, after each `__del__`.

    In a reference cycle an object of the program may call close() in its `__del__`. The garbage collector finalizes a
    consumer of the cycle before that, but it does not track code objects.
    """
    return lifetime.__code__.replace(co_name="group_consumer")


def leave_when_dropped(
    owned: object, membership: Membership, commits: CommitQueue, fetching: Fetching
) -> "weakref.finalize[Any, Any]":
    """Leave the group, without callbacks, when this object of a consumer is freed; else its threads keep partitions."""
    found = weakref.finalize(owned, _leave_in_background, os.getpid(), membership, commits, fetching)
    found.atexit = False
    return found


def _leave_in_background(process: int, membership: Membership, commits: CommitQueue, fetching: Fetching) -> None:
    if process == os.getpid():
        # Garbage collection may run in any thread, so it must not wait for brokers.
        start_thread(partial(_leave, membership, commits, fetching), "group-consumer-dropped")


def _leave(membership: Membership, commits: CommitQueue, fetching: Fetching) -> None:
    with contextlib.ExitStack() as rest:
        rest.callback(fetching.close)
        rest.callback(commits.close)
        membership.abandon()


def refuse_after_fork(fetching: Fetching) -> None:
    """Make a child process refuse calls of this consumer, and exit without waiting for its client's threads."""
    _IN_USE.add(fetching)


def _after_fork() -> None:
    for fetching in list(_IN_USE):
        fetching.ahead.interrupt()
        # librdkafka's destructor would wait for threads that do not run in this process.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(fetching.client))


os.register_at_fork(after_in_child=_after_fork)
