# ruff: noqa: SLF001 - kafka-python's coordinator tells nobody that it joins
"""What a member does before each attempt to join, which kafka-python does only before the first of them."""

from typing import Any


def lose_before_joining(coordinator: Any) -> None:  # noqa: ANN401 - untyped
    """Tell that partitions are lost, and hold them no more, before a join of a member that was put out of its group.

    kafka-python does so where the member learns it from a heartbeat. Where it learns it within a rebalance, from the
    answer to JoinGroup or SyncGroup (it stood still for longer than its session, and the answer had come before), it
    joins at once as a new member and takes its old partitions along (cooperative): those that it gets back would be
    read on from where it stood, behind what their owner in between has committed, and those that it does not get back
    would be called revoked, and their commits accepted, because they carry the new generation.
    """
    attempt = coordinator._do_join_and_sync_async

    async def join() -> bytes:
        generation = coordinator._generation
        if generation.is_lost() and coordinator._subscription.assigned_partitions():
            await coordinator._on_join_prepare_async(generation.generation_id, generation.member_id)
        answer: bytes = await attempt()
        return answer

    coordinator._do_join_and_sync_async = join
