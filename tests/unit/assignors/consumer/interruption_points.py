"""Raises at each point of a call at which the interpreter runs handlers of signals."""

import dis
import gc
import itertools
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

_CALLS: Final = frozenset({"CALL", "CALL_FUNCTION_EX", "CALL_KW"})
_LOOPS: Final = frozenset({"JUMP_BACKWARD"})


class Interruption(BaseException):
    """Stands for KeyboardInterrupt, which would end a test run that goes wrong."""


class Interrupter:
    """Raises once, at the nth point of one thread's call.

    The points are the start of each function in Python, the end of each call of a function or class in C, and the end
    of a loop's round. A point after the return of a function in Python would be none.

    Args:
        number: of the point, from 0.
        spared: files in whose functions nothing is raised.
    """

    def __init__(self, number: int, spared: frozenset[str]) -> None:
        self._number = number
        self._spared = spared
        self._points = itertools.count()
        self._before: dict[int, int] = {}  # frame -> its last instruction
        self._in_c: dict[int, bool] = {}
        self._in_python: set[int] = set()
        self._codes: dict[CodeType, bytes] = {}
        self.raised_in = ""

    def run(self, call: Callable[[], object]) -> bool:
        """Run the call; return whether it was interrupted.

        No garbage is collected meanwhile: an interruption in a callback of the collector reaches only a report.
        """
        collects = gc.isenabled()
        gc.disable()
        sys.setprofile(self._profile)
        sys.settrace(self._begin)
        try:
            call()
        except Interruption:
            return True
        finally:
            sys.settrace(None)
            sys.setprofile(None)
            if collects:
                gc.enable()
        return bool(self.raised_in)  # it may have been kept, or raised as another error

    def begin(self, frames: list[FrameType]) -> None:
        """Count the points from now on, also those in these running functions, until `sys.settrace(None)`."""
        sys.setprofile(self._profile)
        sys.settrace(self._begin)
        for frame in frames:
            frame.f_trace = self._step
            frame.f_trace_opcodes = True
            self._before[id(frame)] = frame.f_lasti

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if event in {"c_call", "c_return", "c_exception"}:
            self._in_c[id(frame)] = event == "c_call"

    def _begin(self, frame: FrameType, event: str, _: object) -> Any:
        if event != "call" or frame.f_code.co_filename in self._spared:
            return None
        caller = frame.f_back
        if caller is not None and not self._in_c.get(id(caller)):
            self._in_python.add(id(caller))
        self._forget(frame)
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "return":
            self._forget(frame)
        elif event == "opcode" and self._is_point(frame) and next(self._points) == self._number:
            sys.settrace(None)
            sys.setprofile(None)
            self.raised_in = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            raise Interruption
        return self._step

    def _forget(self, frame: FrameType) -> None:
        self._before.pop(id(frame), None)
        self._in_c.pop(id(frame), None)
        self._in_python.discard(id(frame))

    def _is_point(self, frame: FrameType) -> bool:
        before = self._before.get(id(frame))
        self._before[id(frame)] = frame.f_lasti
        if before is None:  # after the start of a function, which is traced before its first instruction
            return True
        code = self._codes.setdefault(frame.f_code, frame.f_code.co_code)
        name = dis.opname[code[before]]
        if name not in _CALLS:
            return name in _LOOPS
        in_python = id(frame) in self._in_python
        self._in_python.discard(id(frame))
        return not in_python
