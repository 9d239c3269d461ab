"""The fairest loads that worker caps allow: if a plan has them, no search finds more even ones.

A topic of n partitions is read by at most c members, so any set of topics loads the sum of their c members with all of
their partitions. The topics with the most partitions for each reader are therefore above the rest: each of them is
divided evenly among its own readers, until the topics that are left give the other members at least as much as the
next topic would. No plan has a load vector that is smaller, compared from the highest load down, because it would put
fewer partitions on that many members than these topics have.

A plan with these loads may not exist. If a plan has them, they are proven to be the fairest.
"""

import numpy as np

from assignors.planner.input_arrays import I64


def fairest_capped_loads(sizes: I64, readers: I64, members: int) -> I64:
    """Bound the sorted loads of all plans of members with equal weights.

    Args:
        sizes: partitions of each topic, shape (T,).
        readers: maximum number of members that may read each of them, at least 1 for a topic with partitions,
            shape (T,).
        members: number of all members.

    Returns:
        The loads from the highest down, shape (M,); no plan's loads are smaller, compared in this order.
    """
    some = sizes > 0
    sizes, readers = sizes[some], readers[some]
    order = np.argsort(-(sizes / readers), kind="stable")
    left, others = int(sizes.sum()), members
    loads: list[int] = []
    for size, most in zip(sizes[order].tolist(), readers[order].tolist(), strict=True):
        if most >= others or size * others <= left * most:
            break
        loads += _even(size, most)
        left, others = left - size, others - most
    return np.array(sorted([*loads, *_even(left, others)], reverse=True), dtype=np.int64)


def are_fairest(load: I64, sizes: I64, readers: I64) -> bool:
    """Return whether loads are proven to be the fairest; the arguments are those of `fairest_capped_loads`."""
    return bool((np.sort(load)[::-1] == fairest_capped_loads(sizes, readers, len(load))).all())


def _even(partitions: int, members: int) -> list[int]:
    share, rest = divmod(partitions, members)
    return [share + 1] * rest + [share] * (members - rest)
