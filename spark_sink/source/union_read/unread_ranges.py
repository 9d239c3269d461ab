"""The offsets that Kafka has and the tables lack."""

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from assignors.fleet import FleetTopic
from spark_sink.errors import DataLossError, FetchError
from spark_sink.kafka.partition_offsets import PartitionOffsets
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.sink.batch_against_table import identity_number

_log = structlog.get_logger("azimuth.union")
# A leader that was just elected may not know the end of its log yet (KIP-207), and an election takes a moment.
_PATIENCE_S: Final = 10.0
_PAUSE_S: Final = 0.1


def unread(
    positions: Mapping[TopicPartition, int],
    beginnings: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[Range]:
    """Return the ranges from the positions to the ends, sorted. Pure.

    Args:
        positions: the next offset, for partitions that the tables know.
        beginnings: the first offset of the log, for the others.
        ends: the end of the log (exclusive), by partition.

    Raises:
        DataLossError: a log ends before the position.
    """
    found = []
    for key, end in sorted(ends.items()):
        begin = positions.get(key, beginnings.get(key, end))
        if begin > end:
            raise DataLossError(
                f"{key.topic}/{key.partition}: the table has come to offset {begin}, and the log ends at {end}: is it "
                "another cluster, or was the topic deleted and recreated?"
            )
        if begin < end:
            found.append(Range(*key, begin, end))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """The records that the tables lack.

    Attributes:
        ranges: where they are.
        identities: `<cluster id>/<topic id>` by topic, for the check after the last record.
        labels: the names of the topics in the tables.
    """

    ranges: Sequence[Range]
    identities: Mapping[str, str]
    labels: Mapping[str, str]

    @property
    def most_records(self) -> int:
        """The number of offsets; compaction and transactions leave fewer records."""
        return sum(one.end - one.begin for one in self.ranges)


def topic_of(label: str) -> str:
    """Return the topic of a name in a table: fleets name a recreated topic `<name>@<topic id>`."""
    return label.partition("@")[0]


def find_unread(
    options: SourceOptions, positions: Mapping[TopicPartition, int], identities: Mapping[str, int]
) -> Unread:
    """Ask the brokers for the ranges that the tables lack.

    Args:
        options: of the source; its topics are all that the tables know, and more if some are asked for.
        positions: of the tables.
        identities: of the tables: the topic id of each name, as a number.

    Raises:
        DataLossError: a topic was recreated and no agent has written records of the new one, or a log ends before the
            position.
        FetchError: no topic is on this cluster, or the end of a log or the id of a recreated topic is not known.
    """
    with _offsets(options) as logs:
        keys = logs.subscribed()
        topics = {key.topic for key in keys}
        logs.check_rights(sorted(set(options.topics) - topics))  # a topic that is refused looks as if it did not exist
        _warn_of_missing(options, topics)
        found = logs.identities(topics)
        labels = _labels(topics, found, identities, {key.topic for key in positions})
        own = {
            key: positions[at] for key in keys if (at := TopicPartition(labels[key.topic], key.partition)) in positions
        }
        ends = _ends(logs, keys, own, options)
        fresh = keys - own.keys()
        beginnings = logs.beginnings(fresh)
        if unknown := sorted(fresh - beginnings.keys()):
            raise FetchError(f"{unknown[0].topic}/{unknown[0].partition}: the first offset of its log is not known")
    return Unread(ranges=unread(own, beginnings, ends), identities=found, labels=labels)


@contextlib.contextmanager
def _offsets(options: SourceOptions) -> Iterator[PartitionOffsets]:
    logs = PartitionOffsets(options)
    try:
        yield logs
    finally:
        logs.close()


def _warn_of_missing(options: SourceOptions, present: Collection[str]) -> None:
    missing = sorted(set(options.topics) - set(present))
    if missing and not present:
        raise FetchError(
            f"{options.kafka['bootstrap.servers']}: it has none of the topics of the table, such as {missing[0]}: is "
            "it the right cluster, and may this user describe them?"
        )
    if missing:
        _log.warning("topics of the table are not on the cluster", topics=len(missing), first=missing[0])


def _labels(
    topics: Collection[str], now: Mapping[str, str], known: Mapping[str, int], written: Collection[str]
) -> dict[str, str]:
    """Return the name of each topic in the tables.

    Args:
        topics: on the cluster.
        now: their ids, as far as the brokers answer.
        known: of the tables: the topic id of each name, as a number.
        written: the names that the tables have positions of.
    """
    recreated = {topic_of(label) for label in written if label != topic_of(label)}
    labels = {}
    for topic in sorted(topics):
        identity = now.get(topic)
        if identity is None and topic in recreated:
            raise FetchError(f"{topic}: the topic was recreated, and the brokers do not answer which one it is now")
        if identity is None or identity_number(identity) == known.get(topic, identity_number(identity)):
            labels[topic] = topic
            continue
        cluster, _, number = identity.partition("/")
        labels[topic] = f"{topic}@{FleetTopic(cluster, number, topic).printed_id}"
        if labels[topic] not in written:
            raise DataLossError(
                f"{topic}: the topic was deleted and recreated after the table's rows were written, or this is another "
                "cluster, so its offsets mean other records"
            )
    return labels


def _ends(
    logs: PartitionOffsets,
    keys: Collection[TopicPartition],
    positions: Mapping[TopicPartition, int],
    options: SourceOptions,
) -> dict[TopicPartition, int]:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        ends = logs.ends(keys)
        ends |= _hidden({key: positions[key] for key, end in ends.items() if end < positions.get(key, 0)}, options)
        missing = sorted(key for key in keys if key not in ends)
        short = any(end < positions.get(key, 0) for key, end in ends.items())
        if not missing and not short:
            return ends
        if time.monotonic() >= deadline:
            break
        time.sleep(_PAUSE_S)
    if missing:
        one = missing[0]
        raise FetchError(
            f"{one.topic}/{one.partition}: the end of its log is not known, so rows would be missing "
            f"({len(missing)} partitions): has it a leader?"
        )
    return ends


def _hidden(positions: Mapping[TopicPartition, int], options: SourceOptions) -> dict[TopicPartition, int]:
    """Return the positions in their logs that an open transaction hides from readers of committed records.

    The agents have read uncommitted records, so the transaction is in the table as far as it was read. Nothing after it
    can be read before its end.
    """
    if not positions:
        return {}
    uncommitted = replace(options, kafka={**options.kafka, "isolation.level": "read_uncommitted"})
    with _offsets(uncommitted) as logs:
        ends = logs.ends(positions)
    return {key: at for key, at in positions.items() if at <= ends.get(key, -1)}
