"""The offset of a batch: one JSON value that wholly describes which ranges the batch reads.

`{"v": 1, "partitions": {"<topic>": {"<partition>": [begin, end, generation]}}, "topics": {"<topic>": "<id>"}}`, ranges
are `[begin, end)`. The ids, `<cluster id>/<topic id>` (KIP-516), distinguish a topic from a recreated topic of the same
name, whose offsets mean other records. Unknown ids are left out.

Spark writes it into `<checkpointLocation>/offsets/<batchId>` before the batch runs, so source and sink agree on
the ranges without communication, also after a crash. An empty range (begin == end) means that the member owns the
partition and the batch reads nothing of it. A partition that the member has lost is not listed. A reader adds `reads`,
the text of what it subscribes to.
"""

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from spark_sink.errors import OffsetError

VERSION = 1
READS = "reads"

SHAPE = '{"v": 1, "partitions": {topic: {partition: [begin, end, generation]}}}'


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class Range(NamedTuple):
    """The offsets of one partition that a batch reads: `[begin, end)`, claimed in one generation of the group."""

    topic: str
    partition: int
    begin: int
    end: int
    generation: int = -1

    @property
    def key(self) -> TopicPartition:
        """The partition, without the range."""
        return TopicPartition(self.topic, self.partition)

    @property
    def records(self) -> int:
        """The length in offsets; an upper bound of the records, because compacted topics have gaps."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Offset:
    """The ranges of one batch, ordered by topic and partition; equal ranges have equal offsets and equal JSON.

    Attributes:
        ranges: by partition, sorted.
        identities: `<cluster id>/<topic id>` by topic, if known.
    """

    ranges: Mapping[TopicPartition, Range] = field(default_factory=dict)
    identities: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ranges: Iterable[Range], identities: Mapping[str, str] | None = None) -> Self:
        """Create the offset of these ranges; identities of topics that have no range are left out.

        Raises:
            OffsetError: a partition is listed twice, or a range is negative or runs backwards.
        """
        found: dict[TopicPartition, Range] = {}
        for one in sorted(ranges):
            key = one.key
            if key in found:
                raise OffsetError(f"{one.topic}/{one.partition}: listed twice in one offset")
            if not 0 <= one.begin <= one.end:
                raise OffsetError(f"{one.topic}/{one.partition}: range [{one.begin}, {one.end}) is none")
            found[key] = one
        known = identities or {}
        return cls(found, {topic: known[topic] for topic in sorted({key.topic for key in found}) if topic in known})

    @classmethod
    def parse(cls, value: str | Mapping[str, Any]) -> Self:
        """Read an offset from its JSON text, or from the value that the text holds.

        Raises:
            OffsetError: the text is not an offset of a supported version.
        """
        try:
            raw = json.loads(value) if isinstance(value, str) else value
            if raw["v"] != VERSION:
                raise OffsetError(
                    f"offset version {raw['v']!r}, only {VERSION} is known: was it written by a newer one?"
                )
            ranges = [
                Range(topic, int(partition), int(begin), int(end), int(generation))
                for topic, partitions in raw["partitions"].items()
                for partition, (begin, end, generation) in partitions.items()
            ]
            return cls.of(ranges, {topic: str(one) for topic, one in raw.get("topics", {}).items()})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise OffsetError(f"{str(value)[:200]!r} is not an offset of kafka-group: need {SHAPE}") from error

    def __iter__(self) -> Iterator[Range]:
        return iter(self.ranges.values())

    def __len__(self) -> int:
        return len(self.ranges)

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """The exclusive end by partition, which is where the next batch begins."""
        return {key: one.end for key, one in self.ranges.items()}

    def only(self, keys: Container[TopicPartition]) -> Self:
        """Return the offset restricted to these partitions."""
        return self.of((one for key, one in self.ranges.items() if key in keys), self.identities)

    def value(self) -> dict[str, Any]:
        """Return the JSON value that Spark expects from a reader."""
        partitions: dict[str, dict[str, list[int]]] = {}
        for one in self:
            partitions.setdefault(one.topic, {})[str(one.partition)] = [one.begin, one.end, one.generation]
        value: dict[str, Any] = {"v": VERSION, "partitions": partitions}
        return {**value, "topics": dict(self.identities)} if self.identities else value

    def value_of(self, reads: str) -> dict[str, Any]:
        """Return the value with the name of what its source reads, so that a sink sees two sources that read the same.

        `parse` leaves the name out: offsets with equal ranges are equal.
        """
        return {**self.value(), READS: reads}

    def json(self) -> str:
        """Return the JSON text."""
        return json.dumps(self.value(), separators=(",", ":"))
