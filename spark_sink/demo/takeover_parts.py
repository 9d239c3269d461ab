"""What a takeover waits for: the dead agent's session, the rebalance, and the first commit by another agent."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import KafkaException

from spark_sink.demo.timeline import Ownership
from spark_sink.ranges.batch_offset import TopicPartition

_ANSWER_S = 2.0


class GroupsAdmin(Protocol):
    """The call of confluent-kafka's `AdminClient` that describes groups."""

    def describe_consumer_groups(
        self,
        group_ids: list[str],
        **options: Any,  # noqa: ANN401 -- as in the client
    ) -> Mapping[str, "Future[Any]"]:
        """Request descriptions of some groups."""


@dataclass(slots=True)
class SessionWatch:
    """Notices when the broker has removed a dead member from its group.

    Args:
        admin: of the cluster.
        group: its name.
        clock: unix seconds.

    Attributes:
        ended: when the member was seen to be gone, unix seconds; None if it was not seen.
    """

    admin: GroupsAdmin
    group: str
    clock: Callable[[], float] = time.time
    ended: float | None = None
    _members: frozenset[str] = frozenset()

    def before_the_kill(self) -> None:
        """Note the members while all of them are alive."""
        self._members = self._present() or frozenset()

    def look(self) -> None:
        """Ask the broker again; an answer that does not come is asked for at the next look."""
        if self.ended is None:
            present = self._present()
            if present is not None and not self._members <= present:
                self.ended = self.clock()

    def _present(self) -> frozenset[str] | None:
        try:
            asked = self.admin.describe_consumer_groups([self.group], request_timeout=_ANSWER_S)
            return frozenset(one.member_id for one in asked[self.group].result(_ANSWER_S).members)
        except (KafkaException, TimeoutError):
            return None


def takeover_parts(
    ownership: Iterable[Ownership],
    owned: frozenset[TopicPartition],
    *,
    killed: float,
    session_end: float | None,
    commit: float,
) -> dict[str, float] | None:
    """Split the time of a takeover; None if the end of the session was not seen.

    Args:
        ownership: of the other agents.
        owned: partitions of the dead agent.
        killed: time of its death, unix seconds.
        session_end: when the broker had removed it from the group.
        commit: when another agent had committed rows of its partitions.

    Returns:
        Seconds by part, in their order: `session`, `rebalance`, `first_commit`.
    """
    gained = min((one.time for one in ownership if one.time > killed and one.partitions & owned), default=None)
    if session_end is None or gained is None:
        return None
    ends = [killed]
    for end in (session_end, gained, commit):
        ends.append(min(max(end, ends[-1]), commit))
    names = ("session", "rebalance", "first_commit")
    return {name: round(ends[at + 1] - ends[at], 2) for at, name in enumerate(names)}
