"""Which files of a table are joined into larger ones. Pure."""

from collections.abc import Sequence

_MB = 1 << 20
BOUNDS = (64 * _MB, 8 * _MB, _MB)  # upper bounds of the classes of sizes, bytes; larger files stay as they are
ENOUGH = 8  # files of a class that are joined
MOST_BYTES = 512 * _MB  # that one compaction reads
TARGET_BYTES = 128 * _MB  # of a joined file


def files_to_join(sizes: Sequence[int]) -> list[int]:
    """Choose files to join, by their sizes.

    Files of a class are joined when there are enough of them, together with all smaller ones. So the files of one class
    make a file of the next class or larger, and a row is rewritten about once for each class. Only files below the
    smallest bound may be joined more often, which costs little.

    Args:
        sizes: bytes of each file of a partition.

    Returns:
        Their places in `sizes`, the smallest first; empty if there is nothing to do.
    """
    for bound, below in zip(BOUNDS, (*BOUNDS[1:], 0), strict=True):
        if sum(below <= size < bound for size in sizes) >= ENOUGH:
            return _fitting([at for at in sorted(range(len(sizes)), key=sizes.__getitem__) if sizes[at] < bound], sizes)
    return []


def _fitting(places: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the first places whose files have MOST_BYTES together."""
    found: list[int] = []
    total = 0
    for at in places:
        total += sizes[at]
        if total > MOST_BYTES:
            break
        found.append(at)
    return found
