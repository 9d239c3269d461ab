"""What is done before each attempt to join, driven against a coordinator that is not kafka-python's."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from assignors import _group_member_join as subject


class Coordinator:
    """One that notes what it is asked to do."""

    def __init__(self, *, lost: bool, owned: set[str]) -> None:
        self.done: list[str] = []
        self._generation = SimpleNamespace(is_lost=lambda: lost, generation_id=-1, member_id="")
        self._subscription = SimpleNamespace(assigned_partitions=lambda: owned)

    async def _on_join_prepare_async(self, generation: int, member_id: str) -> None:
        assert (generation, member_id) == (-1, "")
        self.done.append("lost")

    async def _do_join_and_sync_async(self) -> bytes:
        self.done.append("joined")
        return b"yours"


@pytest.mark.parametrize(
    ("lost", "owned", "done"),
    [
        pytest.param(True, {"a"}, ["lost", "joined"], id="put out of the group"),
        pytest.param(True, set(), ["joined"], id="with nothing to lose"),
        pytest.param(False, {"a"}, ["joined"], id="still a member"),
    ],
)
def test_who_was_put_out_of_the_group_says_so_before_it_joins(lost: bool, owned: set[str], done: list[str]) -> None:  # noqa: FBT001 - parameters
    """Each attempt, also the second one within a rebalance; kafka-python looks only before the first."""
    coordinator: Any = Coordinator(lost=lost, owned=owned)
    subject.lose_before_joining(coordinator)
    assert asyncio.run(coordinator._do_join_and_sync_async()) == b"yours"
    assert coordinator.done == done
