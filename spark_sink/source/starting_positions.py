"""Finds the starting offset of partitions without a position, by the options `starting...`."""

from collections.abc import Iterable

from spark_sink.errors import OptionError
from spark_sink.options.starting_offsets import LATEST, Starting
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.group_contract import Membership


def starting_positions(
    group: Membership, starting: Starting, keys: Iterable[TopicPartition], *, begins: bool
) -> dict[TopicPartition, int]:
    """Find the first offset to read of partitions without a position in the table and in the group.

    Args:
        group: returns offsets by time, and the beginnings and ends of logs.
        starting: the rule.
        keys: the partitions.
        begins: whether the group reads for the first time; if not, LATEST means EARLIEST.

    Returns:
        Positions. A partition without an answer is left out; the next trigger retries.

    Raises:
        OptionError: no record is as late as the requested time, and the options make that an error.
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
