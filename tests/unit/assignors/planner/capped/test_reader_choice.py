"""How the partitions of a capped topic are shared among its readers."""

import numpy as np
import pytest

from assignors.planner.capped.reader_choice import _share_out


@pytest.mark.parametrize("seed", range(50))
def test_each_partition_goes_to_the_reader_with_room_and_the_smallest_piece(seed: int) -> None:
    """The rule, partition by partition: plans stay the same, byte by byte, however it is computed."""
    random = np.random.default_rng(seed)
    readers, count = int(random.integers(1, 9)), int(random.integers(0, 30))
    owned, load, high = (random.integers(0, most, readers) for most in (5, 20, 25))
    expected = np.zeros(readers, dtype=np.int64)
    for _ in range(count):
        by_rule = np.lexsort((load + expected, owned + expected, load + expected >= high))
        expected[by_rule[0]] += 1
    assert _share_out(count, owned, load, high).tolist() == expected.tolist()
