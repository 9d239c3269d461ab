"""The offsets of a batch read as numbers: the read can be repeated, and the write knows its ranges."""

import contextlib
import json
from collections.abc import Mapping

from spark_sink.errors import OptionError
from spark_sink.lake.positions_in_delta_log import positions
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.starting_offsets import TOPIC_IDS
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.source.batch_reader import batch_ranges, refuse_for_batch

_POSITIONS = "positions"
_REPLACED = ("ending", _POSITIONS, "starting", "subscribe", TOPIC_IDS.lower())  # beginnings of names, in lower case


def fixed_offsets(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a batch read with the present offsets as numbers.

    Spark asks a source for its ranges each time that it runs a plan, and `latest` is another offset then. With these
    options every run reads the same records, and a batch write (`.write.format("delta-exactly-once")`) with the same
    options knows the ranges of its rows.

    Args:
        options: of `spark.read.format("kafka-group")`. With `positions`, the address of a table, and `kafka.group.id`,
            a partition begins at the group's position in the table.

    Returns:
        The same options with `subscribe`, `startingOffsets`, `endingOffsets` and `topicIds` in place of the options of
        topics, offsets, times and positions.

    Raises:
        OptionError: an option is invalid, a topic or partition does not exist, or the table is ahead of the log.
        FetchError: a partition has no leader.
        TableError: the positions cannot be read.
    """
    from spark_sink.kafka.partition_offsets import PartitionOffsets

    parsed, known = parse(options)
    with contextlib.closing(PartitionOffsets(parsed)) as logs:
        logs.check_rights(parsed.topics)
        # Before the offsets: if a topic is recreated between the two, the read refuses it.
        identities = logs.identities({one.topic for one in logs.subscribed()})
        ranges = batch_ranges(logs, parsed)
    return with_offsets(options, Offset.of((after(one, known.get(one.key)) for one in ranges), identities))


def parse(options: Mapping[str, str]) -> tuple[SourceOptions, Mapping[TopicPartition, int]]:
    """Return the options of the read, and the positions of the group in the table that they name.

    Raises:
        OptionError: one of them is invalid.
        TableError: the positions cannot be read.
    """
    table = next((value for name, value in options.items() if name.lower() == _POSITIONS), None)
    given = {name: value for name, value in options.items() if name.lower() != _POSITIONS}
    if table and not any(name.lower() == "kafka.group.id" for name in given):
        raise OptionError("option 'positions' needs the option 'kafka.group.id': positions are those of a group")
    parsed = SourceOptions.parse(given, stream=False)
    refuse_for_batch(parsed)
    return parsed, positions(table, parsed.group, parsed.storage) if table else {}


def after(one: Range, position: int | None) -> Range:
    """Begin a range at the position of the table, if it has one.

    Raises:
        OptionError: the range ends before it.
    """
    if position is None:
        return one
    if position > one.end:
        raise OptionError(
            f"{one.topic}/{one.partition}: the table has come to offset {position}, and the batch ends before it, at "
            f"{one.end}. Give a later end; if the topic was deleted and recreated, use a new table"
        )
    return one._replace(begin=position)


def with_offsets(options: Mapping[str, str], offset: Offset) -> dict[str, str]:
    """Return the options with these ranges in place of the options that led to them."""
    begins: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for one in offset:
        begins.setdefault(one.topic, {})[str(one.partition)] = one.begin
        ends.setdefault(one.topic, {})[str(one.partition)] = one.end
    return {
        **{name: value for name, value in options.items() if not name.lower().startswith(_REPLACED)},
        "subscribe": ",".join(begins),
        "startingOffsets": json.dumps(begins),
        "endingOffsets": json.dumps(ends),
        TOPIC_IDS: json.dumps(offset.identities),
    }
