"""Makes a producer that a forked process inherits raise an error in every method, instead of queueing records forever.

librdkafka's threads and the thread that watches the leaders stay in the process that created the producer. The copy in
the new process would accept records and never send them. A check of the process id would cost time for every record, so
the copy changes its class when the process forks.
"""

import functools
import os
import weakref
from typing import Any

from producer.errors import ForkError

# By identity: a subclass may compare its producers, and has then no hash.
_live: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()


def refuse_after_fork(producer: object) -> None:
    """Make the copy of a producer in a forked process refuse every call."""
    _register()
    _live[id(producer)] = producer


@functools.cache
def _register() -> None:
    os.register_at_fork(after_in_child=_refuse_all)


def _refuse_all() -> None:
    for producer in list(_live.values()):
        producer.__class__ = _stand_in(type(producer))
    _live.clear()


def _stand_in(kind: type) -> type:
    names = [name for name in dir(kind) if not name.startswith("_")]
    refused = dict.fromkeys([*names, "__enter__", "__len__"], _refuse)
    # No slots and no dictionary, because only a class with the same layout can replace another class.
    return type(kind.__name__, (kind,), {**refused, "__slots__": ()})


def _refuse(producer: object, *_: object, **__: object) -> None:
    name = type(producer).__name__
    raise ForkError(
        f"{name}: made before process {os.getppid()} forked process {os.getpid()}, where no thread sends its records: "
        "make a producer in each process"
    )
