"""Follows the numbers that the autoscaler publishes for a group's topics, in a thread of its own."""

import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from assignors.scaling import NewsListener, ScaledTopic, WorkersFeed, WorkersRecord

log = logging.getLogger(__name__)

_INTERVAL_S: Final = 2.0
_ANSWER_S: Final = 5.0


class Feed(Protocol):
    """The parts of `WorkersFeed` that are needed here."""

    cluster: str
    records: dict[ScaledTopic, WorkersRecord]

    def refresh(self, timeout_s: float = 5.0, *, to_end: bool = False) -> bool:
        """Read new records."""

    def close(self) -> None:
        """Close the client."""


class FollowedNumbers:
    """The current records of the workers topic for one group; a call never waits for a broker.

    Contract: without an answer the last known records count, at first none. A change is there within two seconds, and
    immediately if Redis announces it. The thread ends with `close`, or when the object is no longer referenced.

    Args:
        kafka: librdkafka's properties of the cluster, at least `bootstrap.servers`.
        topic: the workers topic.
        group: the group whose numbers count.
        news: address of the Redis that announces changes; None for none.
        feed: creates the feed.

    Raises:
        ScalingFileError: a property or the address of Redis is invalid.
    """

    def __init__(
        self,
        kafka: Mapping[str, Any],
        topic: str,
        group: str,
        news: str | None = None,
        feed: Callable[[Mapping[str, Any], str], Feed] = WorkersFeed,
    ) -> None:
        self._group = group
        self._known: Mapping[str, WorkersRecord] = {}
        self._look, self._ended = threading.Event(), threading.Event()
        self._said = ""
        self._listener = None if news is None else NewsListener(news, topic, self._look.set).start()
        weakref.finalize(self, _end, self._ended, self._look)
        follow = (weakref.ref(self), feed(kafka, topic), self._look, self._ended)
        threading.Thread(target=_follow, args=follow, name="workers-numbers", daemon=True).start()

    def __call__(self) -> Mapping[str, WorkersRecord]:
        """Return the records by topic."""
        return self._known

    def close(self) -> None:
        """End the threads, without waiting for a broker."""
        _end(self._ended, self._look)
        if self._listener is not None:
            self._listener.close()

    def look(self, feed: Feed, *, whole: bool) -> bool:
        """Read the topic once; return whether that succeeded."""
        try:
            feed.refresh(_ANSWER_S, to_end=whole)
        except Exception as error:  # noqa: BLE001 -- the thread continues, and the last numbers stay
            if str(error) != self._said:
                log.warning("numbers of workers: %s; the last ones stay", error)
            self._said = str(error)
            return False
        self._said = ""
        mine = (feed.cluster, self._group)
        found = {name.topic: one for name, one in feed.records.items() if (name.cluster, name.group) == mine}
        for topic in sorted(found.keys() | self._known.keys()):
            before, now = self._known.get(topic), found.get(topic)
            if (before and before.workers) != (now and now.workers):
                text = "%s: %s workers" if now else "%s: no number of workers any more"
                log.info(text, *([topic, now.workers] if now else [topic]), extra={"topic": topic})
        self._known = found
        return True


def _end(*events: threading.Event) -> None:
    for event in events:
        event.set()


def _follow(owner: "weakref.ref[FollowedNumbers]", feed: Feed, asked: threading.Event, ended: threading.Event) -> None:
    """Read the topic until the end; the owner is referenced only during a read, or it would never be collected."""
    known = False
    while not ended.is_set() and (numbers := owner()) is not None:
        changed = asked.is_set()
        asked.clear()  # before the read: a later message asks for another one
        known |= numbers.look(feed, whole=changed or not known)
        del numbers
        asked.wait(_INTERVAL_S)
    feed.close()
