"""Requests a rebalance when the workers per topic change, without a restart and without work in the event loop."""

import logging
import threading
import weakref
from typing import Any

from assignors.clients.kafka_python_internals import assignors_of, is_closed, listening_coordinators
from assignors.planner.worker_caps import Workers
from assignors.protocol.worker_caps_source import WorkersSource

log = logging.getLogger(__name__)


class Rejoin:
    """The coordinator of an assignor's consumer, which kafka-python does not pass to the assignor."""

    def __init__(self, assignor: object, cluster: Any) -> None:  # noqa: ANN401 - untyped in kafka-python
        """Find the coordinator among the listeners of the cluster's metadata, by its assignors."""
        self._coordinator: weakref.ref[Any] | None = None
        for found in listening_coordinators(cluster):
            if any(a is assignor for a in assignors_of(found).values()):
                self._coordinator = weakref.ref(found)

    def alive(self) -> bool:
        """Return whether the consumer still exists, and is not closed."""
        coordinator = self._coordinator() if self._coordinator is not None else None
        return coordinator is not None and not is_closed(coordinator)

    def ask(self) -> bool:
        """Request a rebalance at the consumer's next poll (with the flag that a failed heartbeat sets, too)."""
        coordinator = self._coordinator() if self._coordinator is not None else None
        if coordinator is None:
            return False
        coordinator.request_rejoin()
        return True


class WorkersWatch:
    """A daemon thread on the leader: reads the source, and requests a rebalance while it differs from the plan's value.

    It ends when it is stopped, or when the consumer is closed or no longer exists. One request is not enough: if it
    comes during a rebalance, kafka-python drops it at the end of that rebalance, although the plan used the old value.
    """

    def __init__(self, source: WorkersSource, planned: Workers, rejoin: Rejoin, interval_s: float) -> None:
        """Start watching.

        Args:
            source: source of the workers.
            planned: the workers of the current plan.
            rejoin: requests the rebalance.
            interval_s: seconds between two reads.
        """
        self._stopped = threading.Event()
        arguments = (source, planned, rejoin, interval_s)
        threading.Thread(target=self._run, args=arguments, name="workers-watch", daemon=True).start()

    def stop(self) -> None:
        """Request the end of the thread, without waiting for it."""
        self._stopped.set()

    def _run(self, source: WorkersSource, planned: Workers, rejoin: Rejoin, interval_s: float) -> None:
        logged = planned
        while not self._stopped.wait(interval_s) and rejoin.alive():
            source.refresh()
            if source.value != planned:
                if source.value != logged:
                    log.info("workers changed from %r to %r: asking for a rebalance", planned, source.value)
                logged = source.value
                rejoin.ask()
