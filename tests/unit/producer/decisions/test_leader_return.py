"""When records follow a leader that has come back."""

from producer.decisions.leader_locality import Reason, levels_of
from producer.decisions.leader_return import LocalityInUse, settle


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
