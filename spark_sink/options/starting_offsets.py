"""The starting offset of partitions without a position in the table or the group."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_sink.errors import OptionError
from spark_sink.options.texts import choice, json_value, number
from spark_sink.ranges.batch_offset import TopicPartition

EARLIEST, LATEST = -2, -1
_MARKS = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """The starting offset of partitions without a position in the table or the group.

    Attributes:
        mark: EARLIEST or LATEST, for every partition that is not listed.
        offsets: by partition, an offset, EARLIEST or LATEST.
        timestamp_ms: start at the first record at or after this time, for every partition; None for no such rule.
        timestamps_ms: the same by partition.
        no_later_record: "error" or "latest": the effect of a time after the last record.
    """

    mark: int = EARLIEST
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp_ms: int | None = None
    timestamps_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    no_later_record: str = "error"


def starting(given: Mapping[str, str]) -> Starting:
    """Read the options of the start, named as in Spark's Kafka source.

    Raises:
        OptionError: one of them is invalid.
    """
    text = given.get("startingoffsets", "earliest").strip()
    strategy = choice(given, "startingoffsetsbytimestampstrategy", ("error", "latest"))
    offsets = (
        {} if text.lower() in _MARKS else _by_partition(json_value(text, "startingOffsets"), "startingOffsets", -2)
    )
    stamps = json_value(given.get("startingoffsetsbytimestamp", "{}"), "startingOffsetsByTimestamp")
    timestamp = given.get("startingtimestamp")
    return Starting(
        mark=_MARKS.get(text.lower(), EARLIEST),
        offsets=offsets,
        timestamp_ms=None if timestamp is None else number(given, "startingtimestamp", None),
        timestamps_ms=_by_partition(stamps, "startingOffsetsByTimestamp", 0),
        no_later_record=strategy,
    )


def _by_partition(value: object, name: str, least: int) -> dict[TopicPartition, int]:
    try:
        found = {
            TopicPartition(topic, int(partition)): int(number)
            for topic, partitions in value.items()  # type: ignore[attr-defined]  # other types are refused below
            for partition, number in partitions.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise OptionError(f'option {name!r}: need {{"topic": {{"0": number}}}}, got {value!r}') from error
    wrong = [key for key, number in found.items() if number < least]
    if wrong:
        raise OptionError(f"option {name!r}: {wrong[0].topic}/{wrong[0].partition} is below {least}")
    return found
