"""The consumers of one reader, by lane, with their totals, which include closed consumers."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from assignors.fleet import Lane
from spark_sink.fleet.lane_consumer import LaneConsumer


class Consumers:
    """Consumers by lane; one thread adds and closes them, any thread may read their totals."""

    def __init__(self) -> None:
        self._open: dict[Lane, LaneConsumer] = {}
        self._counting = threading.Lock()
        self._rebalances = 0
        self._received: Mapping[int, int] = {}

    def __iter__(self) -> Iterator[LaneConsumer]:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def get(self, lane: Lane) -> LaneConsumer | None:
        """Return the consumer of a lane, if it is read."""
        return self._open.get(lane)

    def add(self, consumer: LaneConsumer) -> LaneConsumer:
        """Keep a consumer until its lane is closed."""
        self._open[consumer.lane] = consumer
        return consumer

    def close(self, lane: Lane) -> None:
        """Make a lane's consumer leave its group; its counts stay in the totals."""
        try:
            self._open[lane].close()
        finally:
            with self._counting:
                closed = self._open.pop(lane)
                self._rebalances += closed.rebalances
                self._received = _total([self._received, closed.received])

    def close_all(self) -> None:
        """Make all consumers leave their groups at the same time, after all their records were written."""
        closing = [threading.Thread(target=self.close, args=(lane,)) for lane in list(self._open)]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()

    @property
    def records(self) -> int:
        """Number of records that were read and are not handed over."""
        return sum(one.records for one in self)

    def problems(self) -> list[str]:
        """Return the current problems."""
        return [problem for one in self for problem in list(one.problems.values())]

    def partitions(self) -> dict[str, list[int]]:
        """Return the partitions that are read, by topic."""
        return {label: mine for one in self for label, mine in one.partitions().items()}

    def lag(self) -> dict[str, int]:
        """Return the lag in records, by topic."""
        return {label: behind for one in self for label, behind in one.lag().items()}

    def lag_s(self) -> dict[str, float]:
        """Return the age of the oldest unread record in seconds, by topic."""
        return {label: seconds for one in self for label, seconds in one.lag_s().items()}

    @property
    def rebalances(self) -> int:
        """Number of changes of the assignment."""
        with self._counting:
            return self._rebalances + sum(one.rebalances for one in self)

    def received(self) -> dict[int, int]:
        """Return the bytes received on the wire, by broker id."""
        with self._counting:
            return _total([self._received, *(one.received for one in self)])


def _total(counts: Sequence[Mapping[int, int]]) -> dict[int, int]:
    total: Counter[int] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)
