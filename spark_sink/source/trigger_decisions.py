"""What the source's reader decides at each trigger: hold, commit, place, plan. No Spark, and no broker in its tests."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import structlog

from spark_sink.errors import DataLossError, OptionError
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.starting_offsets import LATEST, Starting
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.ranges.partition_cursors import Cursors
from spark_sink.source.group_contract import Membership
from spark_sink.source.ownership_telemetry import Listener

Positions = Callable[[], Mapping[TopicPartition, int]]

_log = structlog.get_logger("azimuth.source")
_IDLE_S = 0.1
_REWIND_S = 10.0
_IDENTITY_S = 5.0


class Feed:
    """The state of one query's reader between triggers.

    Contract:
    * `next_offset` is called once a trigger with the offset of the last batch, and that batch has been run: Spark
      calls it at no other time, and replays an unfinished batch before.
    * Group offsets trail: what is committed has been run. Positions come from the table, then the group, then the
      options; they are asked for only where a partition was not held without a break.
    """

    def __init__(  # noqa: PLR0913 -- the edges of the reader, each replaced by a test
        self,
        options: SourceOptions,
        group: Membership,
        *,
        positions: Positions | None = None,
        listeners: Sequence[Listener] = (),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._group = group
        self._positions = positions
        self._listeners = listeners
        self._clock, self._sleep = clock, sleep
        self._cursors = Cursors()
        self._committed: dict[TopicPartition, int] = {}
        self._issued: str | None = None
        self._targets: dict[TopicPartition, int] | None = None
        self._ends: dict[TopicPartition, int] = {}
        self._first = True
        self._idle_since: float | None = None
        self._rewound: dict[TopicPartition, float] = {}
        self._identities: dict[str, str] = {}
        self._identified = 0.0

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """The ends of the logs as last seen."""
        return self._ends

    def stop_at_ends(self) -> None:
        """Take the ends of now as the last to be read (Trigger.AvailableNow); partitions made later are not read."""
        self._group.holding(self._options.join_timeout_s)
        subscribed = self._group.subscribed()
        if not subscribed:
            _log.warning("no topic is there that the query subscribes to; nothing is read")
        self._targets = self._group.ends(subscribed)

    def next_offset(self, previous: Offset, limit: int | None) -> Offset:
        """Make the offset of the next batch; `previous` itself when nothing is to be read."""
        self._breathe()
        if self._issued is not None and self._issued != previous.json():
            _log.warning("spark did not take the last offset; positions are asked for anew")
            self._cursors.forget()
        gained = self._cursors.hold(self._group.holding(self._options.join_timeout_s))
        self._commit(self._cursors.positions)
        if gained:
            self._identify({key.topic for key in gained}, previous)
            self._cursors.place(self._place(gained, previous))
            self._commit(self._cursors.positions)
        self._ends = self._bounded(self._current_ends())
        self._tell()
        if self._clock() - self._identified >= _IDENTITY_S and any(self._cursors.backlog(self._ends).values()):
            # After the ends were asked for: they are of the topics that are named now.
            self._identify({key.topic for key in self._cursors.positions}, previous)
        offset = self._cursors.next_offset(self._ends, limit)
        if offset is not None:
            offset = replace(offset, identities=self._named(offset))
        self._idle_since = self._clock() if offset is None else None
        issued = previous if offset is None else offset
        self._issued = issued.json()
        return issued

    def leave(self) -> None:
        """Leave the group; positions are asked for anew after the next join."""
        for one in self._listeners:
            one.left()
        self._group.leave()
        self._cursors.forget()
        self._committed = {}

    def _breathe(self) -> None:
        """Wait a moment between two idle triggers: Spark asks again after 10 ms."""
        if self._idle_since is not None:
            self._sleep(max(0.0, self._idle_since + _IDLE_S - self._clock()))

    def _commit(self, positions: Mapping[TopicPartition, int]) -> None:
        changed = {key: at for key, at in positions.items() if self._committed.get(key) != at}
        if changed and self._group.commit(changed):
            self._committed.update(changed)

    def _bounded(self, ends: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        if self._targets is None:
            return ends
        return {key: min(end, self._targets[key]) for key, end in ends.items() if key in self._targets}

    def _place(self, gained: set[TopicPartition], previous: Offset) -> dict[TopicPartition, int]:
        """Find where partitions begin that were held by others, or by nobody."""
        group = self._group.committed(gained)
        self._committed = {key: at for key, at in self._committed.items() if key not in gained} | group
        known = dict(group)
        if self._positions is None:
            # No table to ask: this query's own checkpoint may be a trigger ahead of the group.
            known |= {key: max(end, group.get(key, 0)) for key, end in previous.ends.items() if key in gained}
        else:
            table = self._positions()
            known |= {key: table[key] for key in gained if key in table}
            if self._first and any(group.values()) and not table:
                _log.warning(
                    "the table has no position of this group: reading goes on where the group's offsets stand; to fill "
                    "the table from the beginning, take a new group and checkpoint",
                    partitions=len(group),
                )
        fresh = gained - known.keys()
        # "latest" is for a group that begins. A partition that turns up later holds records nobody has read.
        begins = self._first and not known
        self._first = False
        known |= starting_positions(self._group, self._options.starting, fresh, begins=begins)
        _log.info("partitions gained", gained=len(gained), without_position=len(fresh))
        return known

    def _identify(self, topics: set[str], previous: Offset) -> None:
        """See that the topics are those that were read before, and not others of the same names.

        A topic that is made anew while a batch is read is found here after that batch; what it may have read of the
        new one is in the table then, and the message is what tells.
        """
        now = self._group.identities(topics)
        if topics >= {key.topic for key in self._cursors.positions}:
            self._identified = self._clock()
        for topic, identity in sorted(now.items()):
            known = self._identities.get(topic) or previous.identities.get(topic)
            if known not in {None, identity}:
                raise DataLossError(
                    f"{topic}: the topic was deleted and made anew (id {known} became {identity}), so its offsets mean "
                    "other records now. Use a new group and table for it"
                )
        self._identities |= now

    def _named(self, offset: Offset) -> dict[str, str]:
        topics = sorted({key.topic for key in offset.ranges})
        return {topic: self._identities[topic] for topic in topics if topic in self._identities}

    def _current_ends(self) -> dict[TopicPartition, int]:
        while True:
            ends = self._group.ends(self._cursors.positions)
            self._refuse_rewinds(ends)
            if self._targets is None or not self._rewound:
                return ends
            self._sleep(_IDLE_S)  # in available-now no later trigger would tell whether that lasts

    def _refuse_rewinds(self, ends: Mapping[TopicPartition, int]) -> None:
        """A log that ends before our position is not the log that was read: the topic was deleted and made anew.

        Only when that lasts: a leader that was just elected may not yet know how far its log is committed (KIP-207).
        """
        now = self._clock()
        behind = {key for key, at in self._cursors.positions.items() if ends.get(key, at) < at}
        self._rewound = {key: self._rewound.get(key, now) for key in behind}
        for key, since in self._rewound.items():
            if now - since >= _REWIND_S:
                at = self._cursors.positions[key]
                raise DataLossError(
                    f"{key.topic}/{key.partition}: offset {at} is next, but the log ends at {ends[key]}: was the "
                    "topic deleted and created again, or does it begin (startingOffsets) past its end? Use a new group "
                    "and table for it"
                )

    def _tell(self) -> None:
        if self._listeners:
            backlog = self._cursors.backlog(self._ends)
            for one in self._listeners:
                one.note(self._cursors.holding, backlog)


def starting_positions(
    group: Membership, starting: Starting, keys: Iterable[TopicPartition], *, begins: bool
) -> dict[TopicPartition, int]:
    """Find where partitions begin that nobody has a position of.

    Args:
        group: asked for offsets by time and for the ends of logs.
        starting: the rule.
        keys: partitions without a position.
        begins: whether the group begins; if not, LATEST means EARLIEST.

    Returns:
        Positions; partitions that cannot be asked for now are left out and come again at the next trigger.

    Raises:
        OptionError: no record is so late as the time asked for, and that is an error by the options.
    """
    keys = set(keys)
    times = {key: starting.timestamps_ms.get(key, starting.timestamp_ms) for key in keys}
    asked = {key: time for key, time in times.items() if time is not None} if begins else {}
    found: dict[TopicPartition, int] = {}
    marks = {key: starting.offsets.get(key, starting.mark) for key in keys - asked.keys()}
    for key, offset in group.at_times(asked).items() if asked else ():
        if offset is not None:
            found[key] = offset
        elif starting.no_later_record == "latest":
            marks[key] = LATEST
        else:
            raise OptionError(
                f"{key.topic}/{key.partition}: no record at or after {asked[key]} ms; "
                "startingOffsetsByTimestampStrategy=latest begins at its end"
            )
    found |= {key: mark for key, mark in marks.items() if mark >= 0}
    latest = {key for key, mark in marks.items() if mark == LATEST and (begins or key in asked)}
    earliest = {key for key, mark in marks.items() if mark < 0} - latest
    if latest:
        found |= group.ends(latest)
    if earliest:
        found |= group.beginnings(earliest)
    return found
