"""Records and bytes of each partition, packed into one integer."""

from typing import Final

from producer.traffic_cost import Count

BYTE: Final = 1 << 48
"""One byte in a packed count, above the records: a partition of 280 trillion records fits below it. So packed counts
compare as their bytes do, without a step that takes the records off."""
RECORDS: Final = BYTE - 1
"""Mask of the records in a packed count."""
EMPTY: Final = 1
"""A record of no bytes, packed."""
WEIGHTS: Final = tuple(size * BYTE + EMPTY for size in range(1 << 12))
"""One record and its bytes, packed: a look-up takes a fifth of the time of an addition of such integers. Longer records
take the longer way."""


def unpacked(packed: int) -> Count:
    """Return the records and bytes of a packed number, as in `PartitionCounts`."""
    size, records = divmod(packed, BYTE)
    return Count(records, size)


class PartitionCounts:
    """Records and bytes per partition.

    Attributes:
        packed: per partition, 1 for each record plus `BYTE` for each of its bytes. A flat list, as at 10,000 partitions
            an object each would miss the caches, and one number, because a second list costs the hot path a tenth.
    """

    __slots__ = ("packed",)

    def __init__(self) -> None:
        self.packed: list[int] = []

    def __len__(self) -> int:
        return len(self.packed)

    def grow(self, partitions: int) -> None:
        """Make room for this many partitions, in place and never smaller: another thread may be about to count here."""
        self.packed.extend([0] * (partitions - len(self.packed)))

    def add(self, partition: int, size: int, records: int = 1) -> None:
        """Add records and their bytes; negative numbers subtract."""
        self.packed[partition] += size * BYTE + records

    def of(self, partition: int) -> Count:
        """Return the count of one partition."""
        return unpacked(self.packed[partition])

    def records(self) -> int:
        """Return the records of all partitions."""
        return sum(self.packed) & RECORDS
