"""The records that were unread when a job started: `azimuth claims run --once` ends when the tables have them. Pure."""

import time
from collections.abc import Callable, Collection, Mapping
from enum import IntEnum

from assignors.fleet import FleetTopic
from spark_sink.lake.table_contract import LostRecordsError
from spark_sink.ranges.batch_offset import TopicPartition

_GIVE_UP_S = 60.0


class Ending(IntEnum):
    """How a job with `--once` has ended, as its exit code; 2 is for settings and servers that do not let it start."""

    READ = 0
    REFUSED = 1
    OVER = 3


class StartBacklog:
    """The partitions with unread records from before the start; used by one thread.

    Only the tables' positions say that records are read: another job may have read them.

    Args:
        clock: seconds of a monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._topics: dict[str, FleetTopic] = {}
        self._unknown: set[TopicPartition] = set()
        self._left: dict[TopicPartition, int] = {}
        self._at: dict[TopicPartition, int] = {}
        self._listed = False
        self._refused_since: dict[str, float] = {}
        self._failed_since: float | None = None
        self._lost = False

    @property
    def known(self) -> bool:
        """Whether all topics and all ends of their logs are known."""
        return self._listed and not self._unknown

    @property
    def unknown(self) -> Collection[TopicPartition]:
        """The partitions whose ends are not known yet."""
        return frozenset(self._unknown)

    @property
    def left(self) -> Mapping[TopicPartition, int]:
        """The end at the start, of partitions that are not read up to it."""
        return dict(self._left)

    @property
    def records(self) -> int:
        """Number of offsets that are left, as far as positions are known."""
        return sum(end - self._at.get(key, 0) for key, end in self._left.items())

    @property
    def lost(self) -> bool:
        """Whether the tables have reached the end, but bad records that they name are gone."""
        return self._lost and self._listed and not self._left and not self._unknown

    def see(self, topics: Mapping[str, FleetTopic], *, whole: bool) -> None:
        """Take the topics of the cluster; until a list is whole, topics are added, and later ones are new.

        A topic that was deleted, or recreated since the start, has no records from before the start any more.

        Args:
            topics: by name.
            whole: whether the list has every topic.
        """
        if not self._listed:
            for name in topics.keys() - self._topics.keys():
                self._topics[name] = topics[name]
                self._unknown |= {TopicPartition(name, number) for number in range(topics[name].partitions)}
            self._listed = whole
        gone = {
            name
            for name, topic in self._topics.items()
            if (now := topics.get(name)) is None or now.identity != topic.identity
        }
        self._unknown = {key for key in self._unknown if key.topic not in gone}
        self._left = {key: end for key, end in self._left.items() if key.topic not in gone}

    def add(self, beginnings: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
        """Take the first offset and the end of each log that has answered."""
        for key in self._unknown & beginnings.keys() & ends.keys():
            self._unknown.discard(key)
            self._at[key] = beginnings[key]
            if beginnings[key] < ends[key]:
                self._left[key] = ends[key]

    def settle(self, positions: Mapping[TopicPartition, int]) -> None:
        """Take the positions of the tables, by topic's name; a topic that moves on is not refused any more."""
        for key, at in positions.items():
            if at > self._at.get(key, 0):
                self._at[key] = at
                self._refused_since.pop(key.topic, None)
            if key in self._left and at >= self._left[key]:
                del self._left[key]

    def note(self, refused: Mapping[str, Exception], *, failed: bool) -> None:
        """Take the result of a round: errors of topics that were refused, or that it failed as a whole."""
        now = self._clock()
        # The table's own commit comes before: the topic moves on, although bad records of it are gone.
        self._lost |= any(isinstance(refused[one], LostRecordsError) for one in refused.keys() & self._topics.keys())
        for topic in refused:
            self._refused_since.setdefault(topic, now)
        if not failed:
            self._failed_since = None
        elif self._failed_since is None:
            self._failed_since = now

    def ending(self, paused: Collection[str], *, over: bool) -> Ending | None:
        """Decide whether the job ends, and how.

        Args:
            paused: topics that are not read for now, and are not waited for.
            over: the job ends in any case.

        Returns:
            None if the job continues.
        """
        left = {key.topic for key in (*self._left, *self._unknown)} - set(paused)
        if self._listed and not left:
            return Ending.REFUSED if self._lost else Ending.READ
        oldest = self._clock() - _GIVE_UP_S
        failing = self._failed_since is not None and (over or self._failed_since <= oldest)
        refused = {topic for topic, since in self._refused_since.items() if over or since <= oldest}
        if failing or (self._listed and left <= refused) or (over and left & refused):
            return Ending.REFUSED
        return Ending.OVER if over else None
