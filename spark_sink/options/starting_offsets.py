"""Where a stream begins in partitions without a position, and where a batch begins and ends in all partitions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_sink.errors import OptionError
from spark_sink.options.option_texts import MOST, choice, json_value, number, whole
from spark_sink.ranges.batch_offset import TopicPartition

EARLIEST, LATEST = -2, -1
TOPIC_IDS = "topicIds"
_MARKS = {"earliest": EARLIEST, "latest": LATEST}
_ENDING = ("endingoffsets", "endingtimestamp", "endingoffsetsbytimestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRule:
    """An offset of each partition.

    Attributes:
        mark: EARLIEST or LATEST, for every partition that is not listed.
        offsets: by partition, an offset, EARLIEST or LATEST.
        timestamp_ms: the first record at or after this time, for every partition; None for no such rule.
        timestamps_ms: the same by partition.
        no_later_record: "error" or "latest": the effect of a time after the last record.
    """

    mark: int = EARLIEST
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp_ms: int | None = None
    timestamps_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    no_later_record: str = "error"

    @property
    def depends_on_the_beginning(self) -> bool:
        """Whether a partition starts elsewhere if its group reads for the first time."""
        timed = self.timestamp_ms is not None or bool(self.timestamps_ms)
        return timed or LATEST in {self.mark, *self.offsets.values()}

    @property
    def named(self) -> set[TopicPartition]:
        """The partitions that are listed."""
        return {*self.offsets, *self.timestamps_ms}


def starting(given: Mapping[str, str]) -> OffsetRule:
    """Read the options of the start, named as in Spark's Kafka source.

    Raises:
        OptionError: one of them is invalid.
    """
    strategy = choice(given, "startingOffsetsByTimestampStrategy", ("error", "latest"))
    return _rule(given, "starting", EARLIEST, strategy)


def ending(given: Mapping[str, str]) -> OffsetRule | None:
    """Read the options of a batch's end, named as in Spark's Kafka source; None if there are none.

    Raises:
        OptionError: one of them is invalid.
    """
    if not any(name in given for name in _ENDING):
        return None
    # A time after the last record means the end, as in Spark's own source.
    return _rule(given, "ending", LATEST, "latest")


def topic_ids(given: Mapping[str, str]) -> dict[str, str] | None:
    """Read `topicIds`, `{"topic": "<cluster id>/<topic id>"}` (KIP-516), which `fixed_offsets` sets; None without it.

    Raises:
        OptionError: it has another form.
    """
    text = given.get(TOPIC_IDS.lower())
    if text is None:
        return None
    found = json_value(text, TOPIC_IDS)
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise OptionError(f'option {TOPIC_IDS!r}: need {{"topic": "<cluster id>/<topic id>"}}, got {found!r}')
    return found


def _rule(given: Mapping[str, str], side: str, default: int, no_later_record: str) -> OffsetRule:
    names = f"{side}Offsets", f"{side}OffsetsByTimestamp"
    # As in Spark, where it takes precedence over the other two.
    if (timestamp_ms := number(given, f"{side}Timestamp", None, least=0)) is not None:
        return OffsetRule(mark=default, timestamp_ms=timestamp_ms, no_later_record=no_later_record)
    text = given.get(names[0].lower())
    mark = default if text is None else _MARKS.get(text.strip().lower())
    return OffsetRule(
        mark=default if mark is None else mark,
        offsets=offsets_by_partition(json_value(text or "", names[0]), names[0], EARLIEST) if mark is None else {},
        timestamps_ms=offsets_by_partition(json_value(given.get(names[1].lower(), "{}"), names[1]), names[1], 0),
        no_later_record=no_later_record,
    )


def offsets_by_partition(value: object, name: str, least: int) -> dict[TopicPartition, int]:
    """Read `{"topic": {"0": number}}`.

    Args:
        value: parsed JSON.
        name: of the option, for messages.
        least: the lowest number that is valid.

    Raises:
        OptionError: it has another form, or a number is too low or too high.
    """
    try:
        pairs = [
            (TopicPartition(topic, _whole(partition)), _whole(number))
            for topic, partitions in value.items()  # type: ignore[attr-defined]  # other types are refused below
            for partition, number in partitions.items()
        ]
    except (AttributeError, TypeError, ValueError) as error:
        raise OptionError(f'option {name!r}: need {{"topic": {{"0": number}}}}, got {value!r}') from error
    found = dict(pairs)
    if len(found) < len(pairs):  # "0" and "00"
        raise OptionError(f"option {name!r}: {value!r} names a partition twice")
    wrong = [key for key, number in found.items() if number < least]
    if wrong:
        raise OptionError(f"option {name!r}: {wrong[0].topic}/{wrong[0].partition} is below {least}")
    wrong = [key for key, number in found.items() if number > MOST]
    if wrong:
        raise OptionError(f"option {name!r}: {wrong[0].topic}/{wrong[0].partition} is above {MOST}")
    return found


def _whole(number: object) -> int:
    """Return a number of JSON, which may be written as a text; raise TypeError where it is something else."""
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise TypeError(number)
    found = whole(number) if isinstance(number, str) else number
    if found is None:
        raise TypeError(number)
    return found
