from collections.abc import Sequence
from typing import overload

from producer.partitioning.packed_counts import PartitionCounts
from producer.partitioning.produce_interpreted import Deliveries, Destinations, DirectQueue, produce

__all__ = ["Deliveries", "Destinations", "DirectQueue", "DrawnTable", "PartitionCounts", "produce"]

class DrawnTable(Sequence[int]):
    def __init__(self, partitions: int, members: tuple[int, ...]) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, slot: int) -> int: ...
    @overload
    def __getitem__(self, slot: slice) -> Sequence[int]: ...
