"""Finds the starting offset of partitions without a position, by the options `rule...`."""

from collections.abc import Iterable

from spark_sink.errors import OptionError
from spark_sink.options.starting_offsets import LATEST, OffsetRule
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.source.group_contract import Logs


def starting_positions(
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
