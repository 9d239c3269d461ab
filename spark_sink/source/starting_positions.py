"""Where the reading of a partition begins: at the table's position, else the group's offset, else by the options."""

from collections.abc import Callable, Collection, Iterable, Mapping

import structlog

from spark_sink.errors import OptionError
from spark_sink.options.starting_offsets import LATEST, OffsetRule
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.source.group_contract import Logs, Membership

Positions = Callable[[Collection[TopicPartition] | None], Mapping[TopicPartition, int]]
"""Reads positions in the table of the query: at least those of some partitions, or all (None)."""

_log = structlog.get_logger("azimuth.source")


class StartingPositions:
    """Chooses the first offset to read of a newly assigned partition: from the table, else the group, else the options.

    Args:
        group: has the committed offsets, and the offsets of logs.
        rule: the starting options.
        table: returns the positions in the table; None without a table.
    """

    def __init__(self, group: Membership, rule: OffsetRule, table: Positions | None) -> None:
        self._group = group
        self._rule = rule
        self._table = table
        self._first = True
        self._gained: set[TopicPartition] = set()

    def find(
        self, gained: set[TopicPartition], committed: Mapping[TopicPartition, int], previous: Offset
    ) -> dict[TopicPartition, int]:
        """Find the positions of partitions that were assigned to another member, or to none, before.

        Args:
            gained: the partitions.
            committed: the group's offsets of these partitions.
            previous: the offset of the last batch.

        Returns:
            Positions. A partition without an answer is left out, and the caller retries.

        Raises:
            OptionError: a starting option is invalid for these logs.
        """
        known, table = dict(committed), {}
        if self._table is None:
            # Without a table, this query's checkpoint may be a trigger ahead of the group.
            known |= {key: max(end, committed.get(key, 0)) for key, end in previous.ends.items() if key in gained}
        else:
            table = dict(self._table(gained))
            if self._first and not table:  # whether the group has begun anywhere
                table = dict(self._table(None))
            known |= {key: table[key] for key in gained if key in table}
            if self._first and any(committed.values()) and not table:
                _log.warning(
                    "the table has no position of this group: reading goes on where the group's offsets stand; to fill "
                    "the table from the beginning, take a new group and checkpoint",
                    partitions=len(committed),
                )
        unknown = gained - known.keys()
        others = self._of_a_group_that_begins() if self._first and not (known or table or previous.ends) else None
        self._first = False
        found = positions_by_rule(self._group, self._rule, unknown | (others or set()), begins=others is not None)
        if others:
            self._group.commit({key: found[key] for key in others if key in found})
        known |= {key: at for key, at in found.items() if key in unknown}
        if gained != self._gained:  # a partition without a leader is gained again at each trigger
            _log.info("partitions gained", gained=len(gained), without_position=len(unknown))
            self._gained = gained
        return known

    def recorded(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return positions of other members' partitions: from the table, else the committed offsets."""
        keys = set(keys)
        found = self._group.committed(keys)
        if self._table is not None:
            table = self._table(keys)
            found |= {key: table[key] for key in keys if key in table}
        return found

    def _of_a_group_that_begins(self) -> set[TopicPartition] | None:
        """Return the subscribed partitions if no member of this group has begun to read, else None.

        "latest" applies to a group that reads for the first time: a partition that appears later has no reader yet, so
        it is read from its beginning. The member that begins commits a start for all partitions, because a member that
        joins later cannot tell a new partition from one that is not read yet.

        Raises:
            OptionError: an option names a partition that is not subscribed. Else a mistyped name would have no effect.
                Later the options have no effect, so what they name may be gone.
        """
        rule = self._rule
        if not (rule.depends_on_the_beginning or rule.named):
            return set()
        subscribed = self._group.subscribed()
        absent = sorted(rule.named - subscribed)
        if not (rule.depends_on_the_beginning or absent):
            return set()
        if self._group.committed(subscribed):
            return None
        if absent:
            raise OptionError(
                f"the options starting... name {absent[0].topic}/{absent[0].partition}, which is not read"
            )
        return subscribed


def positions_by_rule(
    logs: Logs, rule: OffsetRule, keys: Iterable[TopicPartition], *, begins: bool
) -> dict[TopicPartition, int]:
    """Find the offset of each partition that a rule names.

    Args:
        logs: returns offsets by time, and the beginnings and ends of logs.
        rule: the rule.
        keys: the partitions.
        begins: whether the group reads for the first time; if not, LATEST means EARLIEST.

    Returns:
        Offsets. A partition without an answer is left out, and the caller retries.

    Raises:
        OptionError: no record is as late as the requested time, and the options make that an error.
    """
    keys = set(keys)
    times = {key: rule.timestamps_ms.get(key, rule.timestamp_ms) for key in keys}
    asked = {key: time for key, time in times.items() if time is not None} if begins else {}
    found: dict[TopicPartition, int] = {}
    marks = {key: rule.offsets.get(key, rule.mark) for key in keys - asked.keys()}
    for key, offset in logs.at_times(asked).items() if asked else ():
        if offset is not None:
            found[key] = offset
        elif rule.no_later_record == "latest":
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
        found |= logs.ends(latest)
    if earliest:
        found |= logs.beginnings(earliest)
    return found
