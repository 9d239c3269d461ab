"""Plans the next batch at each trigger. The code needs no Spark, and its tests need no broker."""

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import structlog

from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.assigned_positions import AssignedPositions
from spark_sink.ranges.batch_ends_within_limits import Limit
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.source.available_now import AvailableNow
from spark_sink.source.group_contract import Membership
from spark_sink.source.log_continuity import LogContinuity
from spark_sink.source.ownership_telemetry import AssignmentListener
from spark_sink.source.record_sizes import RecordSizes
from spark_sink.source.starting_positions import Positions, StartingPositions

_log = structlog.get_logger("azimuth.source")
_IDLE_S = 0.1


class BatchPlanner:
    """The state of one query's reader between triggers.

    Contract:
    * Spark calls `next_offset` once per trigger, with the offset of the last batch, after that batch has run. It
      replays an unfinished batch before this call.
    * The group's offsets are committed only after the batches that read them have run.
    * `StartingPositions` is asked for the position of a partition only if the partition was not assigned to this member
      all the time.
    """

    def __init__(  # noqa: PLR0913 -- the dependencies of the reader, which tests replace
        self,
        options: SourceOptions,
        group: Membership,
        *,
        positions: Positions | None = None,
        listeners: Sequence[AssignmentListener] = (),
        sizes: RecordSizes | None = None,
        paused: Callable[[], Collection[str] | None] = tuple,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._group = group
        self._starts = StartingPositions(group, options.starting, positions)
        self._listeners = listeners
        self._sizes = sizes
        self._paused = paused
        self._pauses_known = False
        self._clock, self._sleep = clock, sleep
        self._assigned = AssignedPositions()
        self._logs = LogContinuity(group, clock)
        self._run: AvailableNow | None = None
        self._committed: dict[TopicPartition, int] = {}
        self._issued: str | None = None
        self._ends: dict[TopicPartition, int] = {}
        self._idle_since: float | None = None
        self._triggered_at = -math.inf

    def stop_at_ends(self) -> None:
        """Make the current ends of the logs the last offsets to read (Trigger.AvailableNow)."""
        self._group.assignment(self._options.join_timeout_s)
        self._run = AvailableNow(self._options, self._group, self._starts.recorded, self._clock)

    def next_offset(self, previous: Offset, limit: int | None) -> Offset:
        """Compute the offset of the next batch.

        Args:
            previous: the offset of the last batch.
            limit: most offsets that the batch may read. None for all, as with Trigger.Once, which has no other limit.

        Returns:
            `previous` itself if there is nothing to read; with Trigger.AvailableNow, only if every target was reached.

        Raises:
            DataLossError: records that are to be read are gone.
            FetchError: a run with Trigger.AvailableNow cannot reach its targets.
            OptionError: a starting option is invalid for these logs.
        """
        self._wait_if_idle()
        if self._issued is not None and self._issued != previous.json():
            _log.warning("spark did not take the last offset; the reader asks for its positions again")
            self._assigned.forget()
        while (offset := self._plan(previous, limit)) is None and not self._finished():
            self._sleep(_IDLE_S)
        self._idle_since = self._clock() if offset is None else None
        issued = previous if offset is None else replace(offset, identities=self._logs.identities_of(offset))
        self._issued = issued.json()
        return issued

    def log_ends(self) -> dict[str, dict[str, int]]:
        """Return the ends of the assigned partitions' logs at the last trigger, by topic and partition."""
        found: dict[str, dict[str, int]] = {}
        for (topic, partition), end in sorted(self._ends.items()):
            found.setdefault(topic, {})[str(partition)] = end
        return found

    def leave(self) -> None:
        """Leave the group and drop every position."""
        for one in self._listeners:
            one.left()
        self._group.leave()
        self._assigned.forget()
        self._committed = {}

    def _plan(self, previous: Offset, limit: int | None) -> Offset | None:
        gained = self._assigned.assign(self._group.assignment(self._options.join_timeout_s))
        if gained:
            self._commit(self._assigned.positions)
            self._logs.check_identities(gained, previous, every=not self._assigned.positions)
            committed = self._group.committed(gained)
            self._committed = {key: at for key, at in self._committed.items() if key not in gained} | committed
            self._assigned.seek(self._starts.find(gained, committed, previous))
        positions = self._assigned.positions
        with self._committing(positions):
            self._ends = self._group.ends(positions)
        self._logs.check_ends(positions, self._ends)
        unpaused = self._unpaused(positions)
        readable = self._ends if self._run is None else self._run.bounded(self._ends)
        readable = {key: end for key, end in readable.items() if key in unpaused}
        backlog = self._assigned.backlog(readable)
        for one in self._listeners:
            one.note(self._assigned.assignment, backlog)
        if self._logs.due and any(backlog.values()):
            # The ids are read after the ends, so that the ends belong to the topics with these ids.
            self._logs.check_identities(positions, previous, every=True)
        if limit is not None and self._waits_for_more(sum(backlog.values())):
            return None
        return self._assigned.next_offset(readable, self._limit(limit, backlog))

    def _unpaused(self, keys: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return the partitions whose topics are not paused."""
        paused = self._paused()
        self._pauses_known = paused is not None
        if paused is None:
            return set()
        if self._run is not None:
            self._run.leave_out(paused)
        return {key for key in keys if key.topic not in paused}

    def _waits_for_more(self, records: int) -> bool:
        """Return whether the batch is too small and has not waited for long enough, as in Spark's own source."""
        limits = self._options.limits
        if limits.min_offsets is None or self._run is not None:
            return False
        if not records and self._triggered_at == -math.inf:
            return False  # the first trigger that has records does not wait
        now = self._clock()
        if now - self._triggered_at < limits.max_delay_s and records < limits.min_offsets:
            return True
        self._triggered_at = now
        return False

    def _limit(self, offsets: int | None, backlog: Mapping[TopicPartition, int]) -> Limit:
        most = self._options.limits.max_bytes
        if offsets is None or most is None or self._sizes is None:
            return Limit(offsets=offsets)
        return Limit(offsets=offsets, bytes=most, sizes=self._sizes.look(self._assigned.positions, backlog))

    def _finished(self) -> bool:
        """Return whether Spark may see that there is nothing to read: it then ends a run with Trigger.AvailableNow."""
        if self._run is None:
            return self._pauses_known  # else a run with Trigger.Once would end without reading anything
        if self._logs.doubtful:
            return False
        return self._run.finished(self._assigned.assignment, self._assigned.positions, self._ends)

    def _wait_if_idle(self) -> None:
        """Pause between two idle triggers, because Spark calls again after 10 ms."""
        if self._idle_since is not None:
            self._sleep(max(0.0, self._idle_since + _IDLE_S - self._clock()))

    def _commit(self, positions: Mapping[TopicPartition, int]) -> None:
        with self._committing(positions):
            pass

    @contextmanager
    def _committing(self, positions: Mapping[TopicPartition, int]) -> Iterator[None]:
        """Commit the positions that have changed while the caller waits for other answers.

        If the caller fails, it does not wait for the commit; the next trigger commits again.
        """
        changed = {key: at for key, at in positions.items() if self._committed.get(key) != at}
        wait = self._group.begin_commit(changed) if changed else None
        yield
        if wait is not None and wait():
            self._committed.update(changed)
