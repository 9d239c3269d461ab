"""What the readers of an agent's sources are made of: their settings, and the parts of one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assignors.fleet import Lane
from assignors.scaling import PollSettings
from spark_sink.fleet.commit_counts import CommitCounts
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.fleet.write_queue import TopicIds

_BUFFER_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """The settings of the readers.

    Attributes:
        agent: name of the agent; part of `client.id`, unless `kafka` sets it.
        group: consumer groups are `<group>.lane-<number>`, and tables keep the positions of `<group>`.
        kafka: librdkafka's properties, by source.
        flush_s: interval of writes to the table.
        include_headers: write the records' headers, too.
        buffer_bytes: memory of each source for records that have been read. The records that are being written may take
            the same amount.
    """

    agent: str = "agent"
    group: str
    kafka: Mapping[str, Mapping[str, Any]]
    flush_s: float = 1.0
    include_headers: bool = False
    buffer_bytes: int = _BUFFER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderParts:
    """The parts of a source's reader.

    Attributes:
        writer: writes the source's tables.
        ids: called for each batch of records.
        look_again: called when a topic may have been recreated.
        ops: counts the errors for an ops log; None without one.
        polls: returns the published settings of polls, by topic.
        lanes: the lanes that will probably be read; their clients connect before the topics are known.
    """

    writer: TableWriter
    ids: TopicIds
    look_again: Callable[[], None]
    ops: CommitCounts | None = None
    polls: Callable[[], Mapping[str, PollSettings]] = dict
    lanes: Sequence[Lane] = ()
