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


def leave_when_dropped(
    consumer: object, membership: Membership, commits: CommitQueue, fetching: Fetching
) -> "weakref.finalize[Any, Any]":
    """Leave the group, without callbacks, when the consumer is garbage collected; else its threads keep partitions."""
    found = weakref.finalize(consumer, _leave_in_background, os.getpid(), membership, commits, fetching)
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
