# ruff: noqa: SLF001 -- kafka-python passes a listener no generation
"""Passes kafka-python's rebalances on: changes of the ownership, and calls of the callbacks for which it waits."""

import contextlib
import logging
from collections.abc import Iterable
from typing import Any

from kafka import TopicPartition as KafkaPartition
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.errors import KafkaTimeoutError
from kafka.future import Future

from assignors.member.callback_thread import Callback, CallbackThread
from assignors.member.ownership import OwnershipCell
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)


class RebalanceListener(AsyncConsumerRebalanceListener):
    """Translates kafka-python's rebalances into changes of the ownership and calls of the callbacks.

    Contract:
    * It runs in the event loop, which continues (heartbeats, commits) while a callback runs.
    * Assigned partitions are owned before `on_assigned` is called, revoked partitions until `on_revoked` has returned
      or `timeout_s` has passed. Lost partitions (KIP-429) are no longer owned when `on_lost` is called.
    * With `reports_empty`, `on_assigned` is called at the end of each rebalance, without partitions if it brings none;
      under an eager assignor `on_revoked` follows, also without partitions, as librdkafka does.
    """

    def __init__(  # noqa: PLR0913 - the arguments of the member, passed on
        self,
        cell: OwnershipCell,
        *,
        on_assigned: Callback | None,
        on_revoked: Callback | None,
        on_lost: Callback | None,
        timeout_s: float,
        name: str,
        reports_empty: bool = False,
    ) -> None:
        self._cell = cell
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._on_lost = on_lost or on_revoked
        self._timeout_ms = timeout_s * 1000
        self._manager: Any = None
        self._coordinator: Any = None
        # Partitions that the user's callbacks have seen. A lost membership clears the ownership before on_lost is
        # called.
        self._announced: frozenset[TopicPartition] = frozenset()
        self._reports_empty = reports_empty
        self._assigned_in = -1
        self._has_empty = False
        self.thread = CallbackThread(name)

    def attach(self, manager: Any, coordinator: Any) -> None:  # noqa: ANN401 - untyped in kafka-python
        """Use this connection manager's event loop, and this coordinator's generation."""
        self._manager, self._coordinator = manager, coordinator

    async def on_partitions_assigned(self, assigned: Iterable[KafkaPartition]) -> None:
        """Add them to the ownership, then call on_assigned."""
        keys = _keys(assigned)
        now_in = self._coordinator._generation
        generation, member_id = now_in.generation_id, str(now_in.member_id)
        if keys:
            self._announced |= keys
            self._assigned_in = generation
        # With the member id, which on_assigned may need for a transaction.
        self._cell.change(
            lambda now: now.plus(keys, generation).standing(
                generation=generation, member_id=member_id, joined=now.joined
            )
        )
        if keys:
            await self._call(self._on_assigned, keys, "on_assigned")

    async def on_joined(self, generation: int) -> None:
        """Call on_assigned without partitions if the rebalance that ended with this generation has brought none."""
        if self._reports_empty and self._assigned_in != generation:
            self._has_empty = self._coordinator._rebalance_protocol is RebalanceProtocol.EAGER
            await self._call(self._on_assigned, frozenset(), "on_assigned")

    async def on_leaving(self) -> None:
        """Call on_revoked for an assignment without partitions; kafka-python calls it for others."""
        if self._has_empty:
            await self.on_partitions_revoked(())

    async def on_partitions_revoked(self, revoked: Iterable[KafkaPartition]) -> None:
        """Call on_revoked, then remove them from the ownership."""
        keys = self._take(_keys(revoked))
        if keys or self._has_empty:
            self._has_empty = False
            await self._call(self._on_revoked, keys, "on_revoked")
        self._cell.change(lambda now: now.minus(keys))

    async def on_partitions_lost(self, lost: Iterable[KafkaPartition]) -> None:
        """Remove them from the ownership, then call on_lost: other members may own them already."""
        keys, self._has_empty = self._take(_keys(lost)), False
        self._cell.change(lambda now: now.outside())
        if keys:
            await self._call(self._on_lost, keys, "on_lost")

    def fail(self, error: BaseException) -> None:
        """End the membership: schedule on_lost for all partitions, from any thread and without waiting."""
        keys = self._take(self._announced)
        if self._on_lost is not None and keys:
            self.thread.put(self._on_lost, keys, lambda: None)
        self._cell.fail(error)

    def _take(self, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        known = partitions & self._announced
        self._announced -= known
        return known

    async def _call(self, callback: Callback | None, keys: frozenset[TopicPartition], name: str) -> None:
        if callback is None:
            return
        done = Future()

        async def finish() -> None:
            done.success(None)

        def finish_in_loop() -> None:
            with contextlib.suppress(RuntimeError):  # the event loop has been closed
                self._manager.call_soon(finish)

        self.thread.put(callback, keys, finish_in_loop)
        try:
            await self._manager.wait_for(done, self._timeout_ms)
        except KafkaTimeoutError:
            log.warning(
                "%s has not returned for %.0f s: the group no longer waits for it, and its commits for "
                "%d partitions will be refused",
                name,
                self._timeout_ms / 1000,
                len(keys),
            )


def _keys(partitions: Iterable[KafkaPartition]) -> frozenset[TopicPartition]:
    return frozenset((one.topic, one.partition) for one in partitions)
