"""Which partitions may be used, and when records follow a leader that has come back."""

from hypothesis import given
from hypothesis import strategies as st

from producer.decisions.candidate_partitions_in_zone import (
    LocalityInUse,
    Reason,
    copies_elsewhere,
    levels_of,
    locate,
    settle,
)

ZONES = [None, "az-a", "az-b", "az-c"]
LEADERS = st.lists(st.none() | st.integers(1, 6), min_size=1, max_size=12)
RACKS = st.dictionaries(st.integers(1, 6), st.sampled_from(ZONES))


def brute_force(
    leaders: list[int | None], racks: dict[int, str | None], rack: str | None, fallback: list[str]
) -> set[int]:
    """The same answer the long way."""
    everything = range(len(leaders))
    led = {p for p in everything if leaders[p] is not None}
    for zone in [rack, *fallback] if rack is not None else []:
        near = {p for p in led if racks.get(leaders[p] or 0) == zone}
        if near:
            return near
    return led or set(everything)


@given(LEADERS, RACKS, st.sampled_from(ZONES), st.lists(st.sampled_from(["az-b", "az-c"]), max_size=2, unique=True))
def test_candidates_equal_brute_force_and_never_run_out(
    leaders: list[int | None], racks: dict[int, str | None], rack: str | None, fallback: list[str]
) -> None:
    """Whatever the metadata says, there is a partition, and `local` is said only when it is true."""
    found = locate(leaders, racks, rack, fallback)
    assert set(found.candidates) == brute_force(leaders, racks, rack, fallback)
    assert (found.reason is Reason.LOCAL) == (
        rack is not None and all(racks.get(leaders[p] or 0) == rack for p in found.candidates)
    )
    levels = levels_of(leaders, racks, rack, fallback)
    assert levels[0] == found
    assert all(level.candidates for level in levels)
    assert [level.rank for level in levels] == sorted({level.rank for level in levels})


def test_copies_are_the_replicas_in_other_zones_that_are_known() -> None:
    """Without a leader, a rack, or replicas in the answer, no copy is invented."""
    racks = {1: "az-a", 2: "az-b", 3: "az-c", 4: "az-a", 5: None}
    leaders = [1, 1, None, 5, 2, 3]
    replicas = [[1, 2, 3], [1, 4], [1, 2], [5, 1], [2, 5, 9]]
    assert copies_elsewhere(leaders, replicas, racks) == (2, 0, 0, 0, 0, 0)
    assert copies_elsewhere([1], [[1, 2], [2, 3]], racks) == (1,)


def test_a_flapping_leader_moves_records_once() -> None:
    """Away at once; back only after the hold without a break."""
    racks: dict[int, str | None] = {1: "az-a", 2: "az-b"}
    near, far = levels_of([1, 2], racks, "az-a"), levels_of([2, 2], racks, "az-a")
    in_use: LocalityInUse | None = settle(None, near, 0.0, 5.0)
    switches = 0
    for second in range(1, 100):
        before = in_use
        in_use = settle(in_use, near if second % 3 else far, float(second), 5.0)
        switches += before is not None and before.locality.rank != in_use.locality.rank
    assert switches == 1
    assert in_use is not None
    for second in range(100, 110):
        in_use = settle(in_use, near, float(second), 5.0)
    assert in_use.locality.reason is Reason.LOCAL


def test_nothing_is_held_back_when_there_is_no_alternative() -> None:
    """No leader anywhere is worse than any way back."""
    racks: dict[int, str | None] = {1: "az-a"}
    in_use = settle(None, levels_of([None, None], racks, "az-a"), 0.0, 5.0)
    assert in_use.locality.reason is Reason.NO_LEADER
    in_use = settle(in_use, levels_of([1, None], racks, "az-a"), 0.1, 5.0)
    assert in_use.locality.candidates == (0,)
