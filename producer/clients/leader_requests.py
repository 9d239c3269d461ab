"""Requests for the leaders of a topic, through the producer's own client."""

import threading
from collections.abc import Callable, Mapping
from time import monotonic, thread_time

from confluent_kafka import KafkaError, KafkaException

from producer.clients.call_apart import call_apart
from producer.clients.wake_up import WakeUp
from producer.decisions.candidate_partitions_in_zone import Replicas
from producer.errors import MetadataError
from producer.metadata_requests import Lister, read_leaders

_PROBE_S = 0.05
_PAUSE_S = 0.95
"""Seconds of a request, and seconds to the next one, while no broker is connected. A waiting request makes librdkafka
try to connect 20 times a second, without its back-off, and each failure is an error for the application."""


class LeaderRequests:
    """Sends them until it is closed; `close` waits for a request in progress.

    Attributes:
        closed: whether it is closed.
        apart_s: CPU seconds of the last answer's reading in another thread.
    """

    def __init__(self, replicas: dict[str, Replicas]) -> None:
        """Args: replicas: broker ids of each partition's replicas by topic; each answer adds its topics."""
        self.closed = False
        self.apart_s = 0.0
        self._replicas = replicas
        self._closing = WakeUp()
        self._using_client = threading.RLock()

    def ask_apart(self, client: Lister, topic: str | None, timeout_s: float) -> Mapping[str, tuple[int | None, ...]]:
        """As `read_leaders`, also inside a callback, which may send the first record to a dead-letter topic."""

        def ask() -> Mapping[str, tuple[int | None, ...]]:
            cpu = thread_time()
            found = read_leaders(client, topic, timeout_s, replicas=self._replicas)
            self.apart_s = thread_time() - cpu
            return found

        return call_apart(ask)

    def ask(self, client: Lister, topic: str, timeout_s: float) -> Mapping[str, tuple[int | None, ...]]:
        """As `read_leaders`; while no broker is connected, in short requests with pauses, which `close` ends.

        Returns:
            The leaders; empty once it is closed.
        """
        until = monotonic() + timeout_s
        while monotonic() + _PROBE_S < until:
            try:
                return self._ask_unless_closed(client, topic, _PROBE_S)
            except MetadataError as error:
                if not _is_unconnected(error):
                    break  # the next request gets all the rest: shorter ones would wait as long for their answers
            self._closing.wait(min(_PAUSE_S, max(0.0, until - monotonic())))
        return self._ask_unless_closed(client, topic, max(0.0, until - monotonic()))

    def unless_closed(self, call: Callable[[], object]) -> bool:
        """Make a call that uses the client; False if it is closed."""
        with self._using_client:
            if not self.closed:
                call()
            return not self.closed

    def close(self) -> None:
        """End pauses, and wait until the client is not used any more; may be called twice."""
        self.closed = True
        self._closing.set()
        with self._using_client:
            pass

    def _ask_unless_closed(self, client: Lister, topic: str, timeout_s: float) -> Mapping[str, tuple[int | None, ...]]:
        with self._using_client:
            return {} if self.closed else read_leaders(client, topic, timeout_s, replicas=self._replicas)


def _is_unconnected(error: MetadataError) -> bool:
    reason = error.__cause__
    return isinstance(reason, KafkaException) and reason.args[0].code() == KafkaError._TRANSPORT  # noqa: SLF001 - its constant
