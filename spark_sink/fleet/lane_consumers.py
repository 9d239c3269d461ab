"""The consumers of one reader, by lane, and what they add up to: also those that are closed."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from assignors.fleet import Lane
from spark_sink.fleet.lane import LaneConsumer


class Consumers:
    """Consumers by lane; one thread adds and closes them, any thread may ask what they add up to."""

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
        """The consumer of a lane that is read."""
        return self._open.get(lane)

    def add(self, consumer: LaneConsumer) -> LaneConsumer:
        """Keep a consumer until its lane is closed."""
        self._open[consumer.lane] = consumer
        return consumer

    def close(self, lane: Lane) -> None:
        """Have a lane's consumer leave its group; what it has counted is kept."""
        try:
            self._open[lane].close()
        finally:
            with self._counting:
                closed = self._open.pop(lane)
                self._rebalances += closed.rebalances
                self._received = _total([self._received, closed.received])

    @property
    def records(self) -> int:
        """How many were read and are not handed over."""
        return sum(one.records for one in self)

    def problems(self) -> list[str]:
        """What does not go well now."""
        return [problem for one in self for problem in list(one.problems.values())]

    def lag(self) -> dict[str, int]:
        """Records behind, by topic."""
        return {label: behind for one in self for label, behind in one.lag().items()}

    def lag_s(self) -> dict[str, float]:
        """The age of the oldest unread record in seconds, by topic."""
        return {label: seconds for one in self for label, seconds in one.lag_s().items()}

    @property
    def rebalances(self) -> int:
        """How often partitions came or went."""
        with self._counting:
            return self._rebalances + sum(one.rebalances for one in self)

    def received(self) -> dict[int, int]:
        """Bytes that came over the wire, by broker id."""
        with self._counting:
            return _total([self._received, *(one.received for one in self)])


def _total(counts: Sequence[Mapping[int, int]]) -> dict[int, int]:
    total: Counter[int] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)
