"""Rows that open files hold until a row group is complete: one budget for all files that a task writes."""

import threading
import weakref
from typing import Final, Protocol

BUDGET_BYTES: Final = 128 << 20


class HoldsRows(Protocol):
    """An open file that holds rows in memory."""

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows."""
        ...

    def flush(self) -> None:
        """Write them as a row group."""


class _Files(threading.local):
    """The open files of a thread, because a task runs in one thread and no other may write to its files."""

    def __init__(self) -> None:
        self.open: weakref.WeakSet[HoldsRows] = weakref.WeakSet()
        self.most = 0  # bytes that they hold at most: those at the last look at all files, and those written since


_files = _Files()


def count(file: HoldsRows) -> None:
    """Count the rows that a file holds, as long as the file is referenced."""
    _files.open.add(file)


def limit(written: int) -> None:
    """Flush the fullest files if all files of the thread together may hold more than the budget.

    A look at all files takes as long as a write of some hundred rows, if there are hundreds of files. So files are
    flushed until an eighth of the budget is free.

    Args:
        written: bytes added to files since the last call.
    """
    _files.most += written
    if _files.most <= BUDGET_BYTES:
        return
    fullest_first = sorted(_files.open, key=lambda file: file.held_bytes, reverse=True)
    _files.most = sum(file.held_bytes for file in fullest_first)
    if _files.most <= BUDGET_BYTES:
        return
    for file in fullest_first:
        if _files.most <= BUDGET_BYTES - BUDGET_BYTES // 8:
            break
        _files.most -= file.held_bytes
        file.flush()
