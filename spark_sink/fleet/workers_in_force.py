"""The current workers and weights per topic: the configuration, a file of overrides, and the autoscaler's topic."""

import json
import logging
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from assignors import AssignorError, WorkersError
from assignors.fleet import ClusterWatch, FleetWorkers, Override
from assignors.scaling import NewsListener, PollSettings, WorkersFeed, published_polls
from spark_sink.fleet.fleet_settings import FleetSettings

log = logging.getLogger(__name__)

_INTERVAL_S = 2.0
_FIRST_READ_S = 5.0
_MOST_BYTES = 16 << 20  # of a file of overrides, which is read every two seconds


class WorkersNow:
    """The workers for each step of an agent; reads files and topics at most every two seconds.

    Args:
        configured: the workers of the configuration.
        group: the group whose numbers on the workers topic count.
        file: JSON of overrides: name to number or list of agents; None for none. A missing or invalid file is an error,
            and the previous overrides stay. An empty object removes all overrides.
        feed: reads the workers topic; None for none.
        by_volume: whether the rates on the workers topic are weights of topics; configured weights come first.
        listen: makes the listener that calls the given function when the workers topic has changed; None for none.
    """

    def __init__(  # noqa: PLR0913 -- the sources of numbers
        self,
        configured: FleetWorkers,
        group: str,
        file: Path | None,
        feed: WorkersFeed | None,
        *,
        by_volume: bool = False,
        listen: Callable[[Callable[[], None]], NewsListener] | None = None,
    ) -> None:
        self._configured = configured
        self._by_volume = by_volume
        self._group = group
        self._file = file
        self._feed = feed
        self._complete = False
        self._listen = listen
        self._changed = False
        self._polls: Mapping[str, Mapping[str, PollSettings]] = {}
        self._value = configured
        self._failure: AssignorError | None = None
        self._next = 0.0

    @classmethod
    def of(cls, settings: FleetSettings, feed: WorkersFeed | None, wake: Callable[[], None] = lambda: None) -> Self:
        """Return the workers of these settings.

        Args:
            settings: settings of the agent.
            feed: reads the workers topic; None for none.
            wake: called when the workers topic has changed, if there is a Redis that tells of it.
        """
        given, url = settings.workers, settings.news

        def listen(on_change: Callable[[], None]) -> NewsListener:
            def both() -> None:
                on_change()
                wake()

            return NewsListener(url or "", given.topic or "", both)

        return cls(
            settings.fleet_workers,
            settings.name,
            given.file,
            feed,
            by_volume=settings.balance == "volume",
            listen=None if feed is None or url is None else listen,
        )

    def polls(self, source: str) -> Mapping[str, PollSettings]:
        """Return the published settings of the polls of a source's topics; any thread may call."""
        return self._polls.get(source, {})

    def hear(self) -> None:
        """Look at once at the next call, because the workers topic has changed; any thread may call."""
        self._changed = True

    def __call__(self, watches: Sequence[ClusterWatch]) -> FleetWorkers:
        """Return the current workers.

        Raises:
            WorkersError: the file is invalid; the previous value stays.
            PublishError: the workers topic cannot be read; the previous value stays.
        """
        if self._listen is not None:
            self._listen(self.hear).start()
            self._listen = None
        if self._changed or time.monotonic() >= self._next:
            self._next = time.monotonic() + _INTERVAL_S
            try:
                self._value, self._failure = self._look(watches), None
            except AssignorError as error:
                self._failure = error
        if self._failure is not None:
            # Raised until a read succeeds: otherwise the problem would disappear from the status between two reads.
            raise self._failure.with_traceback(None)
        return self._value

    def _look(self, watches: Sequence[ClusterWatch]) -> FleetWorkers:
        overrides = {**self._configured.overrides, **(read_overrides(self._file) if self._file else {})}
        scaled, published = self._scaled(watches)
        return FleetWorkers(
            default=self._configured.default,
            patterns=self._configured.patterns,
            scaled=scaled,
            overrides=overrides,
            published=published,
            weights={**self._rates(), **self._configured.weights},
        )

    def _rates(self) -> dict[str, float]:
        """Return the published rates by `<cluster id>/<name>`: also those of clusters that this agent cannot reach."""
        if self._feed is None or not self._by_volume:
            return {}
        return {
            f"{named.cluster}/{named.topic}": record.records_per_s
            for named, record in self._feed.records.items()
            if named.group == self._group and record.records_per_s is not None
        }

    def _scaled(self, watches: Sequence[ClusterWatch]) -> tuple[dict[str, int], dict[str, int] | None]:
        """Return the published numbers by source and topic, and by cluster and topic."""
        if self._feed is None:
            return {}, None
        # A part of the topic would be other numbers than those of the other agents.
        changed, self._changed = self._changed, False  # before the read: a later message asks for another one
        self._feed.refresh(1.0 if self._complete else _FIRST_READ_S, to_end=changed or not self._complete)
        self._complete = True
        clusters = {watch.source.name: watch.seen().cluster for watch in watches}
        records = self._feed.records
        self._polls = {name: published_polls(records, cluster, self._group) for name, cluster in clusters.items()}
        scaled = {
            f"{watch.source.name}/{topic}": number
            for watch in watches
            for topic, number in self._feed.workers(watch.seen().cluster, self._group).items()
        }
        published = {
            f"{named.cluster}/{named.topic}": record.workers
            for named, record in self._feed.records.items()
            if named.group == self._group
        }
        return scaled, published


def read_overrides(file: Path) -> Mapping[str, Override]:
    """Read a file of overrides.

    Raises:
        WorkersError: it does not exist, or is invalid.
    """
    try:
        found: Any = json.loads(_text(file))
        return {name: _override(name, value) for name, value in found.items()}
    except FileNotFoundError as error:
        raise WorkersError(f"{file}: there is no such file of overrides; write {{}} into it for none") from error
    # All agents may read this file: an error of another class would end them all. Deep brackets are a RecursionError.
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        raise WorkersError(
            f"{file}: {why}; need a JSON object of names, each with a number or a list of agents"
        ) from error


def _text(file: Path) -> str:
    """Read a file without the wait for a writer of a pipe, and without one that would fill the memory."""
    found = file.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("is not a file")
    if found.st_size > _MOST_BYTES:
        raise ValueError(f"{found.st_size} bytes, at most {_MOST_BYTES} are read")
    return file.read_text()


def _override(name: str, value: Any) -> Override:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, int):
        return value
    if isinstance(value, list) and all(isinstance(agent, str) for agent in value):
        return tuple(value)
    # A text is a sequence, too: "ab" would mean the agents "a" and "b".
    raise ValueError(f"{name!r}: {value!r}")
