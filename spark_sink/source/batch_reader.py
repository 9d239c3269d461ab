"""The reader of `spark.read`: fixed ranges, no membership, the columns and the decoding of the stream."""

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_sink.errors import DataLossError, FetchError, OptionError
from spark_sink.fetch.raw_columns import without_columns
from spark_sink.formats import Decoder, decode_batch
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.starting_offsets import EARLIEST, LATEST, OffsetRule
from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.ranges.task_packing import Packing, pack
from spark_sink.source.group_contract import Logs
from spark_sink.source.starting_positions import positions_by_rule
from spark_sink.source.stream_reader import TaskRanges

_PAUSE_S = 0.5
_END = OffsetRule(mark=LATEST)


class KafkaBatchReader(DataSourceReader):
    """Reads ranges of offsets that are set when the query is planned.

    Args:
        options: options of the source.
        decoder: decoder of values; None for the raw format.
    """

    def __init__(self, options: SourceOptions, decoder: Decoder | None = None) -> None:
        self._options = options
        self._decoder = decoder

    def partitions(self) -> list[TaskRanges]:
        """Find the ranges, and pack them into tasks."""
        # Imported here, because the tasks need no clients that answer questions.
        from spark_sink.kafka.partition_offsets import PartitionOffsets

        with contextlib.closing(PartitionOffsets(self._options)) as logs:
            logs.check_rights(self._options.topics)
            ranges = batch_ranges(logs, self._options)
            identities = logs.identities({one.topic for one in ranges})
        refuse_recreated(identities, self._options.topic_ids or {})
        packing = Packing(tasks=self._options.parallelism, min_tasks=self._options.min_partitions)
        # Spark makes a task of its own, without a partition, from an empty list.
        return [TaskRanges(task, identities) for task in pack(ranges, packing)] or [TaskRanges([], {})]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the ranges of a task, in Spark's Python workers."""
        from spark_sink.fetch.range_reader import fetch

        assert isinstance(partition, TaskRanges)  # noqa: S101 -- Spark passes the results of `partitions`
        rows = fetch(partition.ranges, self._options.fetch, partition.identities)
        if (decoder := self._decoder) is not None:
            rows = (decode_batch(batch, decoder) for batch in rows)
        for batch in rows:
            yield without_columns(batch, self._options.left_out)


def batch_ranges(logs: Logs, options: SourceOptions, sleep: Callable[[float], None] = time.sleep) -> list[Range]:
    """Find the ranges of a batch read.

    Args:
        logs: returns the subscribed partitions and their offsets.
        options: of the source.
        sleep: waits between two requests for offsets of partitions without a leader.

    Returns:
        A range of each subscribed partition, possibly empty.

    Raises:
        FetchError: a partition has no leader for longer than a rebalance may take.
        OptionError: a topic or partition does not exist, or an offset is not in its log.
    """
    keys = logs.subscribed()
    _refuse_absent(options, keys)
    if options.topic_ids is not None:  # not those that were added since fixed_offsets
        if not options.starting.named:
            raise OptionError(
                "option 'topicIds' needs startingOffsets and endingOffsets in numbers: all three come from "
                "spark_sink.fixed_offsets"
            )
        keys = keys & options.starting.named
    ending = options.ending or _END
    waits = max(1, int(options.join_timeout_s / _PAUSE_S))
    for _ in range(waits):
        begins = positions_by_rule(logs, options.starting, keys, begins=True)
        ends = positions_by_rule(logs, ending, keys, begins=True)
        last = logs.ends(keys)  # after the others, because logs grow
        unknown = sorted(keys - (last.keys() & begins.keys() & ends.keys()))
        if not unknown:
            fixed = options.starting.offsets, ending.offsets
            return [
                _range(
                    Range(*key, begins[key], ends[key]), last[key], given=any(one.get(key, -1) >= 0 for one in fixed)
                )
                for key in sorted(keys)
            ]
        sleep(_PAUSE_S)
    first = unknown[0]
    raise FetchError(
        f"{first.topic}/{first.partition}: no leader answers, and {len(unknown)} of {len(keys)} partitions have no "
        "offsets; nothing was read"
    )


def refuse_for_batch(options: SourceOptions) -> None:
    """Refuse options that have no meaning for a batch read.

    Raises:
        OptionError: there is one.
    """
    if options.landing is not None:
        raise OptionError("option 'landing' is for streams: a batch read returns rows")
    if options.positions is not None:
        raise OptionError(
            "option 'positions' is for streams; for a batch read spark_sink.fixed_offsets turns it into startingOffsets"
        )
    for rule, name, mark, word in (
        (options.starting, "startingOffsets", LATEST, "latest"),
        (options.ending or _END, "endingOffsets", EARLIEST, "earliest"),
    ):
        if mark in {rule.mark, *rule.offsets.values()}:
            raise OptionError(f"option {name!r}: {word} ({mark}) makes an empty batch")
    _refuse_reversed(options.starting, options.ending or _END)


def refuse_recreated(now: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Refuse topics that are not those whose offsets were fixed.

    Args:
        now: `<cluster id>/<topic id>` by topic.
        known: the same when the offsets were fixed; topics that are left out are not compared.

    Raises:
        DataLossError: a topic was deleted and recreated.
    """
    for topic, identity in sorted(now.items()):
        if known.get(topic, identity) != identity:
            raise DataLossError(
                f"{topic}: the topic was deleted and recreated (id {known[topic]} became {identity}), so the offsets "
                "mean other records now; nothing was read. Call spark_sink.fixed_offsets again, and take a new table"
            )


def _refuse_reversed(start: OffsetRule, end: OffsetRule) -> None:
    names = [
        f"{side}{'OffsetsBy' * bool(one.timestamps_ms)}Timestamp"
        for side, one in (("starting", start), ("ending", end))
    ]
    for key in (None, *sorted(start.timestamps_ms.keys() | end.timestamps_ms.keys())):
        first, last = (
            one.timestamp_ms if key is None else one.timestamps_ms.get(key, one.timestamp_ms) for one in (start, end)
        )
        if first is not None and last is not None and last < first:
            place = "" if key is None else f"{key.topic}/{key.partition}: "
            raise OptionError(f"option {names[1]!r}: {place}{last} is before {names[0]}, {first}; the batch is empty")


def _refuse_absent(options: SourceOptions, keys: Collection[TopicPartition]) -> None:
    if options.pattern and not keys:
        raise OptionError(f"option 'subscribePattern': no topic matches {options.pattern!r}; the batch is empty")
    absent = sorted(set(options.topics) - {key.topic for key in keys})
    if absent:
        raise OptionError(f"option 'subscribe': there is no topic {absent[0]!r}")
    rules: Iterable[tuple[str, OffsetRule]] = (("starting", options.starting), ("ending", options.ending or _END))
    for name, rule in rules:
        if wrong := sorted(rule.named - set(keys)):
            raise OptionError(f"the options {name}... name {wrong[0].topic}/{wrong[0].partition}, which is not read")


def _range(asked: Range, last: int, *, given: bool) -> Range:
    """Check one range; `given` says that the user set one of its offsets."""
    place = f"{asked.topic}/{asked.partition}"
    if asked.end > last:
        raise OptionError(f"option 'endingOffsets': {place}: {asked.end} is past the end of the log, {last}")
    if asked.begin > asked.end and given:
        raise OptionError(f"{place}: the batch begins at offset {asked.begin} and ends before it, at {asked.end}")
    return asked._replace(begin=min(asked.begin, asked.end))  # between two times there may be no record
