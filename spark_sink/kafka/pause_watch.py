"""Follows the pauses of a group on one cluster, in a thread of its own."""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from assignors.errors import PauseError
from assignors.pauses import TOPIC, Pause, PausesFeed

log = logging.getLogger(__name__)

_INTERVAL_S: Final = 2.0
_ANSWER_S: Final = 5.0
_UNKNOWN_S: Final = 15.0


class Feed(Protocol):
    """The parts of `PausesFeed` that are needed here."""

    refused: bool

    def refresh(self, timeout_s: float = 5.0, *, to_end: bool = False) -> bool:
        """Read new records."""

    def paused(self, group: str) -> dict[str, Pause]:
        """Return the pauses of a group, by topic."""

    def close(self) -> None:
        """Close the client."""


class PausedTopics:
    """The current pauses, at most some seconds old; a call never waits for a broker.

    Contract:
    * The first call starts the thread. Until the pauses are known, a call returns None, and nothing of the cluster is
      to be read: a restart must not read a paused topic.
    * If the brokers do not answer for 15 s, the last known pauses count; without any, no topic is paused. The topic of
      the pauses must not be able to stop the reading of all others.
    * Any thread may call.
    * The thread ends with `close`, or when the object is no longer referenced.

    Args:
        kafka: librdkafka's properties of the cluster, at least `bootstrap.servers`.
        group: the group whose pauses count.
        feed: creates the feed, in the thread.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        kafka: Mapping[str, Any],
        group: str,
        feed: Callable[[Mapping[str, Any]], Feed] = PausesFeed,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kafka = kafka
        self._group = group
        self._feed = feed
        self._clock = clock
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._known: Mapping[str, Pause] | None = None
        self._began: float | None = None
        self._problem = ""
        self._refused = False
        weakref.finalize(self, self._ended.set)

    def __call__(self) -> Mapping[str, Pause] | None:
        """Return the pauses by topic; None while they are not known."""
        with self._lock:
            if self._began is None:
                self._began = self._clock()
                follow = (weakref.ref(self), self._feed, self._kafka, self._ended)
                threading.Thread(target=_follow, args=follow, name="pauses", daemon=True).start()
            if self._known is None and self._clock() - self._began >= _UNKNOWN_S:
                log.warning("the pauses of topics are not known, so none is paused: %s", self._problem or "no answer")
                self._known = {}
            return self._known

    def close(self) -> None:
        """End the thread, without waiting for a broker."""
        self._ended.set()

    def look(self, feed: Feed, *, whole: bool) -> bool:
        """Read the pauses once.

        Args:
            feed: reads them.
            whole: whether to read the topic to its end.

        Returns:
            Whether the pauses are now known.
        """
        try:
            feed.refresh(_ANSWER_S, to_end=whole)
        except Exception as error:  # noqa: BLE001 -- the thread continues; else a pause would last forever
            if str(error) != self._problem:
                log.warning("pauses of topics: %s", error)
            self.fail(error)
            return False
        self._problem = ""
        if feed.refused and not self._refused:
            log.info("pauses of topics are not followed: allow this user to DESCRIBE and READ topic %r", TOPIC)
        self._refused = feed.refused
        self._take(feed.paused(self._group))
        return True

    def fail(self, error: Exception) -> None:
        """Keep the reason why the pauses are not known."""
        self._problem = str(error)

    def _take(self, found: Mapping[str, Pause]) -> None:
        with self._lock:
            before, self._known = self._known or {}, found
        for topic in sorted(found.keys() - before.keys()):
            log.info("topic %s is paused%s", topic, described(found[topic]), extra={"topic": topic})
        for topic in sorted(before.keys() - found.keys()):
            log.info("topic %s is resumed", topic, extra={"topic": topic})


def _follow(
    owner: "weakref.ref[PausedTopics]",
    connect: Callable[[Mapping[str, Any]], Feed],
    kafka: Mapping[str, Any],
    ended: threading.Event,
) -> None:
    """Read the pauses until the end. The owner is referenced only during a read: else it would never be collected."""
    try:
        feed = connect(kafka)
    except PauseError as error:  # the client that reads the topics reports the same property
        if (pauses := owner()) is not None:
            pauses.fail(error)
        return
    known = False
    while not ended.is_set() and (pauses := owner()) is not None:
        known |= pauses.look(feed, whole=not known)
        del pauses
        ended.wait(_INTERVAL_S)
    feed.close()


def described(pause: Pause) -> str:
    """Return who paused a topic, since when and why; begins with a space."""
    since = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(pause.at_ms / 1000))
    return f" since {since}{f' by {pause.by}' if pause.by else ''}{f': {pause.reason}' if pause.reason else ''}"
