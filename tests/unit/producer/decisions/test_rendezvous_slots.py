"""Key to partition."""

import ctypes
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from producer.decisions.key_hash import key_hash
from producer.decisions.partitioner_names import ClientPartitioner
from producer.decisions.rendezvous_slots import _large_table, hrw_table, slots_for
from producer.testing import librdkafka

global_partition = key_hash(ClientPartitioner.MURMUR2)
DATA = Path(__file__).parents[3] / "data"


def vectors(name: str) -> list[dict[str, Any]]:
    """Read the rows of a file of test vectors."""
    rows: list[dict[str, Any]] = json.loads((DATA / name).read_text())["vectors"]
    return rows


def test_global_keys_follow_java_on_every_published_hash() -> None:
    """The hash is Java's signed one with its sign bit cleared, for all lengths and tails."""
    rows = vectors("murmur2.json")
    modulus = 0x7FFFFFFF
    assert rows
    for row in rows:
        positive = row["hash"] & 0x7FFFFFFF
        assert global_partition(bytes.fromhex(row["key_hex"]), modulus) == positive % modulus, row


def test_global_keys_follow_java_on_every_published_partition() -> None:
    """Each row also catches a common wrong formula (abs, unsigned)."""
    for row in vectors("partition_murmur2.json"):
        assert global_partition(bytes.fromhex(row["key_hex"]), row["partitions"]) == row["partition"], row


def test_global_keys_equal_librdkafkas_own_partitioner_on_100_000_random_keys() -> None:
    """A producer that leaves the choice to librdkafka puts every key into the same partition."""
    function = librdkafka().rd_kafka_msg_partitioner_murmur2_random
    function.restype = ctypes.c_int32
    function.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    random = Random(20_261_121)
    for _ in range(100_000):
        key = random.randbytes(random.randrange(40))
        count = random.randrange(1, 10_000)
        assert global_partition(key, count) == function(None, key, len(key), count, None, None), (key, count)


@settings(max_examples=25, deadline=None)  # a pair of tables takes some 20 ms
@given(st.data(), st.integers(2, 300))
def test_hrw_moves_only_the_keys_of_the_partition_that_left(data: st.DataObject, partitions: int) -> None:
    """Read backwards it is the gain: a partition that enters takes keys only for itself."""
    members = data.draw(st.sets(st.integers(0, partitions - 1), min_size=2, max_size=8).map(sorted))
    gone = data.draw(st.sampled_from(members))
    before = np.array(list(hrw_table(partitions, tuple(members))))
    after = np.array(list(hrw_table(partitions, tuple(one for one in members if one != gone))))
    assert set(before.tolist()) <= set(members)
    assert (before[before != after] == gone).all()
    assert (after != gone).all()


def test_few_large_tables_are_kept() -> None:
    """Leaders that keep moving at 10,000 partitions filled 2 GB: 256 tables of 8 MB."""
    for first in range(12):
        hrw_table(300, tuple(range(first, 300, 7)))
    assert _large_table.cache_info().currsize <= 4


@pytest.mark.parametrize(
    ("partitions", "members"),
    [(2, 2), (3, 1), (8, 4), (120, 40), (1_000, 334), (1_000, 2), (10_000, 3_334)],
)
def test_hrw_shares_the_slots_out_evenly(partitions: int, members: int) -> None:
    """No partition is starved or flooded: five standard deviations of a fair draw at most."""
    chosen = tuple(range(0, partitions, partitions // members))[:members]
    counts = np.bincount(list(hrw_table(partitions, chosen)), minlength=partitions)[list(chosen)]
    fair = slots_for(partitions) / members
    assert abs(counts - fair).max() <= 5 * fair**0.5


def test_local_modes_move_as_many_keys_as_promised(capsys: pytest.CaptureFixture[str]) -> None:
    """Losing one of n leaders moves 1/n of the keys with hrw, and nearly all with mod, which is printed, too."""
    random = Random(7)
    keys = [random.randbytes(16) for _ in range(20_000)]
    for count in (2, 4, 10, 40):
        members = tuple(range(0, 3 * count, 3))
        fewer = members[:-1]
        one, other = hrw_table(3 * count, members), hrw_table(3 * count, fewer)
        slots = len(one)
        hrw = sum(one[global_partition(k, slots)] != other[global_partition(k, slots)] for k in keys) / len(keys)
        mod = sum(members[global_partition(k, count)] != fewer[global_partition(k, count - 1)] for k in keys) / len(
            keys
        )
        print(f"{count} local leaders lose one: local-hrw moves {hrw:.3f}, local-mod {mod:.3f}")  # noqa: T201 - the figure beside it
        assert hrw <= 1 / count + 0.02
    assert "local-mod" in capsys.readouterr().out
