# ruff: noqa: SLF001 -- kafka-python's coordinator has no public hooks
"""Loses the partitions of a member whose coordinator has not answered for a session."""

import logging
from typing import Any

from kafka.future import Future

log = logging.getLogger(__name__)


class SessionEnd:
    """Reports the partitions as lost, and lets the member join as a new one, as librdkafka does.

    The coordinator may have removed this member, and another may own its partitions. kafka-python (like Java's client)
    keeps them until a coordinator answers.

    Args:
        coordinator: kafka-python's.
    """

    def __init__(self, coordinator: Any) -> None:  # noqa: ANN401 -- untyped
        self._coordinator = coordinator
        self._reporting: Future | None = None

    def reports(self) -> bool:
        """Report a loss that is due; return whether `on_lost` runs, which the member waits for."""
        if self._reporting is not None and self._reporting.is_done:
            self._reporting = None
        if self._reporting is None and self._is_due():
            coordinator = self._coordinator
            log.warning(
                "group %r: the coordinator has not answered for a session of %.0f s: the partitions of this member may "
                "have another owner, so they are lost",
                coordinator.group_id,
                coordinator.heartbeat.config["session_timeout_ms"] / 1000,
            )
            coordinator.reset_generation()
            self._reporting = coordinator._manager.call_soon(self._report)
        return self._reporting is not None

    def _is_due(self) -> bool:
        coordinator = self._coordinator
        # The answer to a join may take longer than a session: the coordinator waits for other members.
        return bool(
            coordinator.heartbeat.session_timeout_expired()
            and not (coordinator.rejoining and coordinator.coordinator_id is not None)
            and coordinator._subscription.assigned_partitions()
        )

    async def _report(self) -> None:
        lost = self._coordinator._generation
        await self._coordinator._on_join_prepare_async(lost.generation_id, lost.member_id)
