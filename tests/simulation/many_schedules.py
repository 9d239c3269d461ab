"""Run the schedules of many seeds, in one process for each core."""

import gc
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.simulation.schedules import simulate

_EACH = 200  # seeds that a process takes at once: a few seconds


def first_broken(first: int, end: int) -> tuple[int, BaseException] | None:
    """The first seed of `[first, end)` whose schedule breaks a promise, with its error; None if none does."""
    return next(_broken(first, end), None)


def all_broken(first: int, end: int, processes: int | None = None) -> dict[int, str]:
    """Run the schedules of `[first, end)` in several processes.

    Args:
        first: seed.
        end: seed after the last one.
        processes: how many run at once; None for one on each core that this process may use.

    Returns:
        What is broken, by seed.
    """
    begins = range(first, end, _EACH)
    # Spawned, because the caller may have threads, which a forked process would lack.
    with ProcessPoolExecutor(processes or os.cpu_count(), get_context("spawn"), _collect_rarely) as pool:
        parts = pool.map(_all_broken, begins, [min(begin + _EACH, end) for begin in begins])
        return {seed: what for part in parts for seed, what in part.items()}


def _all_broken(first: int, end: int) -> dict[int, str]:
    return {seed: f"{type(error).__name__}: {error}" for seed, error in _broken(first, end)}


def _broken(first: int, end: int) -> Iterator[tuple[int, BaseException]]:
    for seed in range(first, end):
        if (error := simulate(seed).error) is not None:
            yield seed, error


def _collect_rarely() -> None:
    """Leave the objects of imported modules out of garbage collections: looking at them took a fifth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
