"""Partitions whose leader takes no records, from librdkafka's statistics (`partitioner.availability.timeout.ms`)."""

from collections.abc import Mapping

Progress = tuple[int, float]
"""Records that a partition's leader has answered, and the time at which that number was first seen."""


class StalledPartitions:
    """Detects partitions whose records wait without progress.

    Args:
        timeout_s: time without progress after which a partition is stalled, seconds; 0 for never.

    Contract: not thread-safe; pass the reports one after another.

    Source: KIP-794; Java measures how long a broker has not been ready. librdkafka does not report this, so here a
    partition is stalled if it has records to send or in flight, and none was answered.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._progress: dict[tuple[str, int], Progress] = {}

    def update(self, topic: str, partitions: Mapping[str, Mapping[str, int]], at_s: float) -> frozenset[int]:
        """Take the `partitions` of one topic from a report.

        Args:
            topic: its name.
            partitions: as librdkafka reports them.
            at_s: time of the report, seconds of a monotonic clock.

        Returns:
            The stalled partitions.
        """
        if not self._timeout_s:
            return frozenset()
        return frozenset(
            int(number) for number, one in partitions.items() if self._stalls((topic, int(number)), one, at_s)
        )

    def _stalls(self, place: tuple[str, int], one: Mapping[str, int], at_s: float) -> bool:
        in_flight = one["msgs_inflight"]
        if not (one["msgq_cnt"] + one["xmit_msgq_cnt"] + in_flight):
            self._progress.pop(place, None)
            return False
        answered = one["txmsgs"] - in_flight
        before = self._progress.get(place)
        if before is None or before[0] != answered:
            self._progress[place] = answered, at_s
            return False
        return at_s - before[1] >= self._timeout_s
