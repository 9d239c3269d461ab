"""Clients of the lanes that an agent will probably read, which connect while the agent still joins its fleet."""

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Final

from confluent_kafka import KafkaException

from assignors.fleet import Lane
from spark_sink.fleet.lane_consumer import LaneConsumer

_KEPT_S: Final = 30.0  # longer than most joins take


class PreparedLanes:
    """Consumers by lane that are not read yet; used by one thread.

    Args:
        make: creates the consumer of a lane.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, make: Callable[[Lane], LaneConsumer], clock: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._clock = clock
        self._ready: dict[Lane, LaneConsumer] = {}
        self._opened_at = clock()

    def open(self, lanes: Iterable[Lane]) -> None:
        """Create consumers of these lanes; where librdkafka refuses the settings, `take` raises its reason."""
        self._opened_at = self._clock()
        for lane in lanes:
            with contextlib.suppress(KafkaException):
                self._ready[lane] = self._make(lane)

    def take(self, lane: Lane) -> LaneConsumer:
        """Return the consumer of a lane: the prepared one, or a new one.

        Raises:
            KafkaException: librdkafka refuses the settings.
        """
        return self._ready.pop(lane, None) or self._make(lane)

    def close(self) -> None:
        """Close the others."""
        while self._ready:
            self._ready.popitem()[1].close()

    def close_old(self) -> None:
        """Close them if the agent has got no topics for half a minute: a spare agent needs no connections."""
        if self._ready and self._clock() - self._opened_at > _KEPT_S:
            self.close()
