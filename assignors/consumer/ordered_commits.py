"""Commits in the order in which they were asked for, those that wait and those that do not."""

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from assignors.errors import AssignorError
from assignors.planner.topics_and_members import TopicPartition

Offsets = Mapping[TopicPartition, int]
Told = Callable[[Exception | None, Offsets], object]


class Commits:
    """One thread that commits.

    Contract:
    * No commit overtakes another: an older offset never replaces a newer one.
    * `settle` returns when all commits asked for so far are answered: called before a revocation is acknowledged, so
      that no commit comes after it.
    * What asynchronous commits came to is told by `tell`, in the thread of its caller.
    """

    def __init__(self, told: Told | None) -> None:
        self._told = told
        self._thread = ThreadPoolExecutor(1, "group-commits")
        self._under_way: deque[tuple[Future[None], Offsets]] = deque()

    def commit(self, how: Callable[[Offsets], Any], offsets: Offsets) -> None:
        """Commit, and wait.

        Raises:
            MembershipError: the offsets were not committed.
        """
        self._thread.submit(how, offsets).result()

    def start(self, how: Callable[[Offsets], Any], offsets: Offsets) -> None:
        """Commit, and do not wait."""
        self._under_way.append((self._thread.submit(how, offsets), offsets))

    def settle(self) -> None:
        """Wait for all answers."""
        self._thread.submit(int).result()

    def tell(self) -> list[tuple[Exception, Offsets]]:
        """Tell of the commits that are answered; returns those that failed and that nobody was told of."""
        untold: list[tuple[Exception, Offsets]] = []
        while self._under_way and self._under_way[0][0].done():
            future, offsets = self._under_way.popleft()
            error = future.exception()
            if error is not None and not isinstance(error, AssignorError):
                raise error
            if self._told is not None:
                self._told(error, offsets)
            elif error is not None:
                untold.append((error, offsets))
        return untold

    def close(self) -> None:
        """Wait for all answers, and end."""
        self._thread.shutdown()
