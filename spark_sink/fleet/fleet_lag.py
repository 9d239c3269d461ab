"""The lag of all topics of a fleet, from what all agents share: the tables' positions and the ends of the logs.

An agent knows the lag of what it reads itself. This is the whole fleet's, also of topics that no agent reads, and every
agent and `azimuth fleet status` compute the same.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, Self

from assignors.clients import LogOffsets
from assignors.errors import AssignorError
from assignors.fleet import FleetTopic
from spark_sink.errors import SparkSinkError
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.kafka.client_property_names import kafka_python_config
from spark_sink.lake.positions_in_delta_log import positions
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.ranges.lag_seconds import UnreadAges

_ANSWER_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFigures:
    """The figures of a topic; None is unknown.

    Attributes:
        lag: unread records, an upper bound, because logs have gaps.
        lag_s: age of the oldest unread record, seconds.
        rate: records per second that came into the table since the last look.
    """

    lag: int | None = None
    lag_s: float | None = None
    rate: float | None = None


class Logs(Protocol):
    """The methods of `LogOffsets` that are needed here."""

    def ends(self, partitions: Collection[TopicPartition], timeout_s: float) -> dict[Any, int]:
        """Return the exclusive end of each log."""

    def beginnings(self, partitions: Collection[TopicPartition], timeout_s: float) -> dict[Any, int]:
        """Return the first offset of each log."""

    def at_times(self, times_ms: Mapping[Any, int], timeout_s: float) -> dict[Any, int | None]:
        """Return the first offset at or after a time."""

    def close(self) -> None:
        """Close the connections."""


class SourceLag:
    """The lag of one source's topics; used by one thread at a time.

    Args:
        table: returns the positions in the source's tables.
        logs: connects to the source's brokers.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        table: Callable[[], Mapping[TopicPartition, int]],
        logs: Callable[[], Logs],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table = table
        self._connect = logs
        self._clock = clock
        self._logs: Logs | None = None
        self._ages = UnreadAges(lambda times: self._open().at_times(times, _ANSWER_S), clock)
        self._before: tuple[float, Mapping[str, int]] | None = None

    def look(self, topics: Sequence[FleetTopic]) -> dict[str, TopicFigures]:
        """Return the figures of these topics, by name; of the first look without rates.

        Raises:
            AssignorError: no broker answers.
            SparkSinkError: a table cannot be read.
        """
        known, now = self._table(), self._clock()
        labels = {key.topic for key in known}
        names = {topic.name: _label(topic, labels) for topic in topics}
        keys = [TopicPartition(topic.name, n) for topic in topics for n in range(topic.partitions)]
        at = {key: known.get(TopicPartition(names[key.topic], key.partition)) for key in keys}
        unread = [key for key, position in at.items() if position is None]
        begins = _keyed(self._open().beginnings(unread, _ANSWER_S)) if unread else {}
        ends = _keyed(self._open().ends(keys, _ANSWER_S))
        held = {key: begins.get(key) if position is None else position for key, position in at.items()}
        lags = by_topic(held, ends)
        placed = {key: position for key, position in held.items() if position is not None}
        self._ages.keep(placed)
        ages = self._ages.look(placed, ends)
        reached = dict.fromkeys(names, 0)
        for key, position in at.items():
            reached[key.topic] += position or 0
        rates = self._rates(now, reached)
        return {
            name: TopicFigures(lag=lags.get(name), lag_s=ages.get(name) if name in lags else None, rate=rates.get(name))
            for name in names
        }

    def close(self) -> None:
        """Close the connections."""
        if self._logs is not None:
            self._logs.close()
            self._logs = None

    def _open(self) -> Logs:
        if self._logs is None:
            self._logs = self._connect()
        return self._logs

    def _rates(self, now: float, reached: Mapping[str, int]) -> dict[str, float]:
        before, self._before = self._before, (now, reached)
        if before is None or now <= before[0]:
            return {}
        return {
            name: max(0.0, (at - before[1][name]) / (now - before[0]))
            for name, at in reached.items()
            if name in before[1]
        }


def by_topic(positions: Mapping[TopicPartition, int | None], ends: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Add up the lag by topic, without topics of which a partition is unknown: their sum would be too small.

    Args:
        positions: the next offset to read; None if it is unknown.
        ends: ends of the logs; a position beyond the end is one of an earlier topic of this name.
    """
    found: dict[str, int] = {}
    unknown: set[str] = set()
    for key, at in positions.items():
        end = ends.get(key)
        if at is None or end is None or at > end:
            unknown.add(key.topic)
        else:
            found[key.topic] = found.get(key.topic, 0) + end - at
    return {topic: records for topic, records in found.items() if topic not in unknown}


def _label(topic: FleetTopic, labels: Collection[str]) -> str:
    recreated = f"{topic.name}@{topic.printed_id}"
    return recreated if recreated in labels else topic.name


def _keyed(offsets: Mapping[Any, int]) -> dict[TopicPartition, int]:
    return {TopicPartition(*key): at for key, at in offsets.items()}


class FleetLag:
    """The lag of all sources of a fleet, at the same time; a source that does not answer has no figures.

    Args:
        sources: by name.
    """

    def __init__(self, sources: Mapping[str, SourceLag]) -> None:
        self._sources = sources

    @classmethod
    def of(cls, settings: FleetSettings) -> Self:
        """Prepare it for a fleet; it connects at the first look."""
        return cls({name: _source(settings, name) for name in settings.sources})

    def look(self, topics: Mapping[str, Sequence[FleetTopic]]) -> dict[str, TopicFigures]:
        """Return the figures of all topics, by label.

        Args:
            topics: by source; those of a source without any are not looked at.
        """
        asked = {name: mine for name, mine in topics.items() if mine}
        with ThreadPoolExecutor(max(1, len(asked))) as asking:
            found = list(asking.map(self._look, asked, asked.values()))
        return {f"{name}/{topic}": one for name, mine in zip(asked, found, strict=True) for topic, one in mine.items()}

    def close(self) -> None:
        """Close all connections."""
        for one in self._sources.values():
            one.close()

    def _look(self, name: str, topics: Sequence[FleetTopic]) -> dict[str, TopicFigures]:
        source = self._sources[name]
        try:
            return source.look(topics)
        except (AssignorError, SparkSinkError, OSError):
            source.close()  # the agents report the cause
            return {topic.name: TopicFigures() for topic in topics}


def _source(settings: FleetSettings, name: str) -> SourceLag:
    address, storage = settings.address(name), settings.table_storage

    def connect() -> Logs:
        return LogOffsets.connect(kafka_python_config(settings.kafka(name)))

    return SourceLag(lambda: positions(address, settings.name, storage), connect)


def summary(figures: Mapping[str, TopicFigures]) -> str:
    """Return the lag of a fleet in one line."""
    if not figures:
        return "lag: unknown"
    known = [one.lag for one in figures.values() if one.lag is not None]
    late = [lag for lag in known if lag]
    oldest = max((one.lag_s or 0.0 for one in figures.values()), default=0.0)
    rates = [one.rate for one in figures.values() if one.rate is not None]
    records = f"{sum(known):,} record{'' if sum(known) == 1 else 's'}"
    parts = [f"lag: {records} in {len(late)} of {len(figures)} topics" if known else "lag: unknown"]
    parts += [f"the oldest unread is {oldest:.0f} s old"] if late else []
    parts += [f"{sum(rates):,.0f} records a second written"] if rates else []
    unknown = len(figures) - len(known)
    parts += [f"the lag of {unknown} topic{'' if unknown == 1 else 's'} is unknown"] if known and unknown else []
    return ", ".join(parts)
