"""Workers per topic from the autoscaler, for the assignor of a query's reader."""

import threading
from collections.abc import Mapping

from assignors.planner import Workers
from assignors.scaling import WorkersFeed

_TIMEOUT_S = 5.0


class FollowedWorkers:
    """A function for `HRWAssignor(workers=...)`, which calls it every few seconds.

    Contract: a configured number for a topic's name overrides a published number, which overrides a pattern and a
    number for all topics. Any thread may call.

    Args:
        kafka: librdkafka's properties of the cluster with the workers topic and the topics to read.
        topic: the workers topic; it may not exist yet.
        group: the group whose numbers count.
        configured: the workers of topics without a published number.
    """

    def __init__(self, kafka: Mapping[str, str], topic: str, group: str, configured: Workers) -> None:
        self._feed = WorkersFeed(kafka, topic)
        self._group = group
        self._configured = configured
        self._lock = threading.Lock()

    def __call__(self) -> Workers:
        """Read new numbers, and return the workers.

        Raises:
            PublishError: no broker answers.
        """
        with self._lock:
            self._feed.refresh(_TIMEOUT_S)
            return above(self._configured, self._feed.workers(self._feed.cluster, self._group))


def above(configured: Workers, published: Mapping[str, int]) -> Workers:
    """Merge published numbers with the configured ones."""
    if not published or configured is None:
        return dict(published) or configured
    return {**published, **(configured if isinstance(configured, Mapping) else {"*": configured})}
