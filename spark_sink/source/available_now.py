"""Decides when a run with Trigger.AvailableNow may end.

Spark ends the run at the first trigger without a new offset. So the reader returns from that trigger only when every
target was read, or raises an error that names the unread partitions.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping

import structlog

from spark_sink.errors import DataLossError, FetchError
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.group_contract import Membership
from spark_sink.source.log_continuity import GRACE_S

Recorded = Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int]]

_log = structlog.get_logger("azimuth.source")
_CHECK_S = 1.0  # between two checks of other members' progress
_NAMED = 5  # partitions that a message names


class AvailableNow:
    """The targets of one run: the ends that the subscribed partitions had when it began.

    Contract:
    * A target is reached when members of the group have read all offsets below it. If another member owns a partition,
      the run waits until its position in the table (without a table, in the group) reaches the target. If that member
      leaves before, the group assigns the partition to another one.
    * A partition without a leader at the start gets its target as soon as a leader answers.
    * Partitions that are created later have no target and are not read.

    Args:
        options: options of the source.
        group: returns the subscribed partitions and the ends.
        recorded: returns positions of partitions in the table, or else in the group.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self, options: SourceOptions, group: Membership, recorded: Recorded, clock: Callable[[], float]
    ) -> None:
        self._options = options
        self._group = group
        self._recorded = recorded
        self._clock = clock
        subscribed = group.subscribed()
        absent = set(options.topics) - {key.topic for key in subscribed}
        if absent or not subscribed:
            _log.warning("subscribed topics do not exist; nothing of them is read", topics=sorted(absent))
        self._targets = group.ends(subscribed)
        self._without_target = subscribed - self._targets.keys()
        self._elsewhere: dict[TopicPartition, int] = {}  # positions of partitions of other members
        self._known: dict[TopicPartition, int] = {}
        self._moved_at = clock()
        self._looked_at = self._searched_at = -math.inf

    def bounded(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Limit the ends of logs to the targets; partitions that were created later are left out."""
        self._set_targets(ends)
        return {key: min(end, self._targets[key]) for key, end in ends.items() if key in self._targets}

    def leave_out(self, topics: Collection[str]) -> None:
        """Drop the targets of paused topics: the run would wait for them until they are resumed."""
        self._targets = {key: at for key, at in self._targets.items() if key.topic not in topics}
        self._without_target = {key for key in self._without_target if key.topic not in topics}

    def finished(
        self, assignment: Assignment, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> bool:
        """Return whether every target was reached; called if no assigned partition has records to read.

        Args:
            assignment: of this member.
            positions: the next offsets of the assigned partitions.
            ends: the ends of their logs, without partitions that have no leader.

        Raises:
            DataLossError: records below a target are gone, and `failOnDataLoss` is set.
            FetchError: no member has made progress for longer than a member may be silent.
        """
        now = self._clock()
        if now - self._looked_at >= _CHECK_S:
            self._look_elsewhere(assignment)
            self._looked_at = now
        known = {**self._elsewhere, **positions}
        if known != self._known:
            self._known, self._moved_at = known, now
        idle_s = now - self._moved_at
        if idle_s >= GRACE_S and now - self._searched_at >= GRACE_S:
            self._drop_lost(ends)
            self._searched_at = now
        unread = self._unread()
        patience_s = self._patience_s(alone=assignment.partitions >= set(unread))
        if unread and idle_s >= patience_s:
            if self._looked_at < now:  # other members may have read the rest
                self._looked_at = -math.inf
                return False
            raise FetchError(self._sentence(unread, assignment, ends, patience_s))
        return not unread

    def _unread(self) -> list[TopicPartition]:
        reached = {key for key, target in self._targets.items() if self._known.get(key, 0) >= target}
        return sorted((self._targets.keys() | self._without_target) - reached)

    def _set_targets(self, ends: Mapping[TopicPartition, int]) -> None:
        found = {key: ends[key] for key in self._without_target & ends.keys()}
        self._targets |= found
        self._without_target -= found.keys()

    def _look_elsewhere(self, assignment: Assignment) -> None:
        """Read the positions of other members."""
        others = [key for key in self._unread() if key not in assignment.partitions]
        if not others:
            return
        self._set_targets(self._group.ends(self._without_target.intersection(others)))
        try:
            self._elsewhere |= self._recorded(others)
        except FetchError as error:
            _log.warning("positions of other members are unknown for now", reason=str(error))

    def _drop_lost(self, ends: Mapping[TopicPartition, int]) -> None:
        """Find targets that no member can reach: deleted partitions, and logs that end earlier than before."""
        subscribed = self._group.subscribed()
        for key in self._unread():
            target, end = self._targets.get(key), ends.get(key)
            if key not in subscribed:
                reason = "it was deleted before it was read"
            elif target is not None and end is not None and end < target:
                reason = f"its log ended at {target} when the run began and ends at {end} now"
            else:
                continue
            if self._options.fail_on_data_loss:
                raise DataLossError(
                    f"{key.topic}/{key.partition}: {reason}: set failOnDataLoss=false to go on without what is gone"
                )
            _log.warning("records are gone, the run goes on without them", partition=key, reason=reason)
            self._targets.pop(key, None)
            self._without_target.discard(key)

    def _patience_s(self, *, alone: bool) -> float:
        """Return the longest time without progress: after it the group reassigns the partitions of a silent member."""
        options = self._options
        return options.poll_timeout_s if alone else options.max_poll_interval_s + options.session_timeout_s

    def _sentence(
        self, unread: list[TopicPartition], assignment: Assignment, ends: Mapping[TopicPartition, int], idle_s: float
    ) -> str:
        named = "; ".join(self._state(key, assignment, ends) for key in unread[:_NAMED])
        more = f"; and {len(unread) - _NAMED} more" if len(unread) > _NAMED else ""
        return (
            f"Trigger.AvailableNow: {len(unread)} of {len(self._targets) + len(self._without_target)} partitions were "
            f"not read to the end, and nothing has moved for {idle_s:g} s: {named}{more}. What was read is committed; "
            "start the query again to read the rest"
        )

    def _state(self, key: TopicPartition, assignment: Assignment, ends: Mapping[TopicPartition, int]) -> str:
        if key not in assignment.partitions:
            joined = assignment.generation >= 0
            reason = "assigned to another member" if joined else "this member has not joined the group yet"
        else:
            reason = f"its log ends at {ends[key]}" if key in ends else "no leader answers"
        at, target = self._known.get(key, "no offset"), self._targets.get(key, "an unknown end")
        return f"{key.topic}/{key.partition} stands at {at} of {target} ({reason})"
