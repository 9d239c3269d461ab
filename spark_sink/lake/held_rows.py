"""Rows that open files hold until a row group is complete: one budget for all files that a task writes."""

import threading
import weakref
from typing import Final, Protocol

BUDGET_BYTES: Final = 128 << 20


class HoldsRows(Protocol):
    """An open file that holds rows in memory."""

    held_bytes: int

    def flush(self) -> None:
        """Write them as a row group."""


class _Files(threading.local):
    """The open files of a thread, because a task runs in one thread and no other may write to its files."""

    def __init__(self) -> None:
        self.open: weakref.WeakSet[HoldsRows] = weakref.WeakSet()


_files = _Files()


def count(file: HoldsRows) -> None:
    """Count the rows that a file holds, as long as the file is referenced."""
    _files.open.add(file)


def limit() -> None:
    """Flush the fullest files until all files of the thread together hold at most the budget."""
    total = sum(file.held_bytes for file in _files.open)
    while total > BUDGET_BYTES:
        fullest = max(_files.open, key=lambda file: file.held_bytes)
        total -= fullest.held_bytes
        fullest.flush()
