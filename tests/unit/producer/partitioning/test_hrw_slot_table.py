"""The stored and the computed table of `local-hrw` are one mapping."""

from random import Random

import pytest

from producer.decisions.rendezvous_slots import hrw_table, slots_for
from producer.partitioning.hrw_slot_table import slot_table

compiled = pytest.importorskip("producer.partitioning.produce_compiled", reason="built without a C compiler")


@pytest.mark.parametrize("partitions", [1, 2, 7, 9, 256, 257, 1_000, 4_097, 10_000])
@pytest.mark.parametrize("share", [1, 3, 16, 64, 10_000], ids="one of {}".format)
def test_a_drawn_table_gives_every_slot_the_partition_of_the_stored_one(partitions: int, share: int) -> None:
    """Processes with and without a C compiler write a key to one partition; few members exhaust the draws."""
    random = Random(partitions * share)
    members = tuple(sorted(random.sample(range(partitions), max(1, partitions // share))))
    stored, drawn = hrw_table(partitions, members), compiled.DrawnTable(partitions, members)
    assert len(drawn) == len(stored)
    slots = range(len(stored)) if len(stored) < 1 << 17 else random.sample(range(len(stored)), 20_000)
    assert [drawn[slot] for slot in slots] == [stored[slot] for slot in slots]


def test_a_large_topic_needs_no_stored_table() -> None:
    """A stored table of 10,000 partitions takes 2 MB, which the caches do not keep, and 0.2 s to build."""
    members = tuple(range(0, 10_000, 3))
    assert isinstance(slot_table(10_000, members), compiled.DrawnTable)
    assert slot_table(10_000, members) is slot_table(10_000, members)


@pytest.mark.parametrize(("partitions", "step"), [(2_048, 3), (10_000, 20)], ids=["small", "few members"])
def test_draws_are_not_used_where_a_stored_table_is_faster(partitions: int, step: int) -> None:
    """Small tables stay in the caches, and few members take many draws."""
    assert not isinstance(slot_table(partitions, tuple(range(0, partitions, step))), compiled.DrawnTable)


def test_a_drawn_table_is_a_sequence_with_an_end() -> None:
    """Code that takes a table iterates over it or indexes it; no index may read memory outside."""
    drawn = compiled.DrawnTable(3, (0, 2))
    assert set(drawn) == {0, 2}
    for slot in (-1, slots_for(3)):
        with pytest.raises(IndexError):
            drawn[slot]
