"""Workers per topic as the autoscaler publishes them, for the assignor of a query's reader."""

import threading
from collections.abc import Mapping

from assignors.planner import Workers
from assignors.scaling import WorkersFeed

_TIMEOUT_S = 5.0


class FollowedWorkers:
    """A function for `HRWAssignor(workers=...)`, which asks it every few seconds.

    Contract: a topic's own name in what is configured wins over a published number, which wins over a pattern and over
    a number for all topics. Any thread may call.

    Args:
        kafka: librdkafka's properties of the cluster that has the workers topic and the topics that are read.
        topic: the workers topic; it may not be there yet.
        group: whose numbers count.
        configured: what holds where none is published.
    """

    def __init__(self, kafka: Mapping[str, str], topic: str, group: str, configured: Workers) -> None:
        self._feed = WorkersFeed(kafka, topic)
        self._group = group
        self._configured = configured
        self._lock = threading.Lock()

    def __call__(self) -> Workers:
        """Read what is new.

        Raises:
            PublishError: no broker answers.
        """
        with self._lock:
            self._feed.refresh(_TIMEOUT_S)
            return above(self._configured, self._feed.workers(self._feed.cluster, self._group))


def above(configured: Workers, published: Mapping[str, int]) -> Workers:
    """Put published numbers above what is configured."""
    if not published or configured is None:
        return dict(published) or configured
    return {**published, **(configured if isinstance(configured, Mapping) else {"*": configured})}
