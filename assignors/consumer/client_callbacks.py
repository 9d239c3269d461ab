"""Callbacks of the configuration, called after librdkafka's call in which they came."""

import contextlib
import ctypes
import itertools
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.interruptions import Once, at_once
from assignors.consumer.one_process import OneProcess

OnAnswer = Callable[[KafkaError | None, list[KafkaPartition]], object]

_ARGUMENTS: Final = {"error_cb": 1, "stats_cb": 1, "throttle_cb": 1, "on_commit": 2}
_OF_LOG: Final = 5
_HELD: Final = (*_ARGUMENTS, "oauth_cb")
# list.append returns None; this function returns a number, so `min` can take it as its key.
_APPEND: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.py_object)(
    ("PyList_Append", ctypes.pythonapi)
)


class OwnedCallbacks:
    """The program's functions in the configuration; only the consumer refers to it.

    The member's threads and the end of a dropped consumer refer to the configuration. If that kept the functions
    themselves, one that refers to the consumer, such as a method of its owner, would keep it in its group forever.

    Args:
        config: librdkafka's properties, with the program's functions.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._functions = {name: partial(config[name]) for name in _HELD if callable(config.get(name))}
        if callable(log := getattr(config.get("logger"), "log", None)):
            self._functions["logger"] = partial(log)
        self._weak = {name: _weak(function) for name, function in self._functions.items()}

    def weakly(self) -> dict[str, Any]:
        """Return the configuration with weak references, which call the functions in C while the consumer exists."""
        weak: dict[str, Any] = dict(self._weak)
        if "logger" in weak:
            weak["logger"] = WeakLogger(weak["logger"])
        return {**self._config, **weak}

    def hold(self) -> None:
        """Keep the functions while the consumer is closed: in a `__del__` in a cycle weak references are cleared."""
        for name, weak in self._weak.items():
            _let_call(weak, self._functions[name])

    def let_go(self) -> None:
        """Keep the functions no longer."""
        for name, weak in self._weak.items():
            _let_call(weak, weakref.proxy(self._functions[name]))


def _weak(function: Callable[..., Any]) -> "partial[Any]":
    calls: Any = weakref.proxy(function)
    return partial(calls)


def _let_call(one: Any, function: object) -> None:  # noqa: ANN401 -- a partial, whose `__setstate__` has no type
    """Let a partial call another function: it stays a function in C, in which no handler of a signal runs."""
    one.__setstate__((function, (), {}, None))


class WeakLogger:
    """Passes lines of the log to a function that it does not keep alive; after the function's end they are dropped."""

    def __init__(self, log: Callable[..., object]) -> None:
        self._log = log

    def log(self, *args: object, **more: object) -> None:
        """As logging.Logger.log."""
        with contextlib.suppress(ReferenceError):
            self._log(*args, **more)


class ClientCallbacks:
    """Notes the callbacks that librdkafka's client makes, and calls the program's functions later.

    Contract:
    * The client calls functions in C, so no handler of a signal runs in its call, and nothing is raised there.
      Otherwise librdkafka ends the call after it has taken the next record from its queue: this record is lost, no
      position shows that, and the client's close() waits for it forever. One place remains: confluent-kafka makes the
      ThrottleEvent of `throttle_cb` in Python.
    * In the client's call a program's function that makes another one, as `list_topics`, ends the process if a second
      callback follows. Here it may make any call.
    * Functions are called in the order of their events, each once, in the thread that calls `call`. If one raises, no
      call fails, because the records of a call would be dropped: `raise_caught` raises the error when the program has
      the records.

    Attributes:
        came: what the client has noted: for each event the functions to call and the number of their arguments, then
            these arguments.
        listens: whether the configuration has such functions.
        on_answer: called with the answer to each asynchronous commit of the client, before the program's `on_commit`.
    """

    def __init__(self) -> None:
        self.came: list[Any] = []
        self.listens = False
        self.on_answer: OnAnswer = lambda *_: None
        self._taken: deque[Any] = deque()
        self._due: deque[tuple[Once, Callable[..., object], tuple[object, ...]]] = deque()
        self._caught: list[BaseException] = []

    def listening(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration with functions that note each event.

        Args:
            config: librdkafka's properties, with the program's functions and logger.
        """
        # librdkafka refuses a value that is not a function.
        noting: dict[str, object] = {
            name: self._note(config[name], count=count)
            for name, count in _ARGUMENTS.items()
            if callable(config.get(name))
        }
        if (logger := config.get("logger")) is not None:
            noting["logger"] = SimpleNamespace(log=self._note(logger.log, count=_OF_LOG))
        self.listens = bool(noting)
        if "on_commit" not in config or "on_commit" in noting:
            # Two calls: an interruption of the first one must not skip the program's.
            own = (config["on_commit"],) if "on_commit" in config else ()
            noting["on_commit"] = self._note(self._commit_answered, *own, count=_ARGUMENTS["on_commit"])
        return {**config, **noting}

    def _commit_answered(self, error: KafkaError | None, partitions: list[KafkaPartition]) -> None:
        self.on_answer(error, partitions)

    def _note(self, *functions: Callable[..., object], count: int) -> Callable[..., object]:
        """Return a function in C that adds the event and its arguments to `came`: `min` passes each to its key."""
        return partial(min, (functions, count), key=partial(_APPEND, self.came))

    def call(self) -> bool:
        """Call the functions that are due; return whether there is an error to raise."""
        if not (self.came or self._taken or self._due):
            return bool(self._caught)
        process = OneProcess()
        while self._due or self._taken or self.came:
            self._take_came()
            once, function, args = due = self._due[0]
            try:
                once.call(function, *args)
            except BaseException as error:
                if not once.made or process.forked:  # an interruption before the call, or a child
                    raise
                self._caught.append(error)  # sys.exit() too: raised by `raise_caught`
            if self._due and self._due[0] is due:  # else a call in the function has removed it
                self._due.popleft()
            process.check()
        return bool(self._caught)

    def raise_caught(self) -> None:
        """Raise the first error of a function since the last call, if any."""
        if self.call():
            error = self._caught[0]
            self._caught.clear()
            raise error

    def _take_came(self) -> None:
        # From a deque: after a long pause with `debug` there are 100,000 lines of the log, and to delete each from the
        # front of a list would move all others.
        at_once((self._taken.extend, self.came), (self.came.clear,))
        while self._taken:
            functions, count = self._taken[0]
            args = tuple(itertools.islice(self._taken, 1, 1 + count))
            due = [(Once(), function, args) for function in functions]
            at_once((self._due.extend, due), *((self._taken.popleft,),) * (1 + count))
