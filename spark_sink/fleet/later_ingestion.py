"""An ingestion that is made in a thread, so that an agent looks at its clusters and joins its fleet meanwhile."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assignors.fleet import FleetTopic, Ingestion, Lane

log = logging.getLogger(__name__)


class LaterIngestion:
    """Implements `Ingestion` with another one that a thread makes.

    Joining a fleet is mostly waiting: for the brokers, and for other agents that may join, too
    (`group.initial.rebalance.delay.ms`). Importing the modules that read and write takes as long, so it happens at the
    same time.

    Args:
        make: returns the ingestion; called once, in the thread.
        failed: called if that raises an error, to end the agent.
    """

    def __init__(self, make: Callable[[], Ingestion], failed: Callable[[], object] = lambda: None) -> None:
        self._make = make
        self._failed = failed
        self._made: Ingestion | None = None
        self._error: BaseException | None = None
        self._wanted: Mapping[Lane, frozenset[FleetTopic]] | None = None
        self._assigning = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="fleet-load", daemon=True)
        self._thread.start()

    def assign(self, lanes: Mapping[Lane, frozenset[FleetTopic]]) -> None:
        """Read these topics from now on, or as soon as the ingestion is made.

        Raises:
            BaseException: the error of `make`, at the first call after it.
        """
        with self._assigning:
            self._wanted = lanes
            if self._made is not None:
                self._made.assign(lanes)
            error, self._error = self._error, None
        if error is not None:
            raise error

    def problems(self) -> Sequence[str]:
        """Return the current problems; none until it is made."""
        return [] if self._made is None else self._made.problems()

    def figures(self) -> Mapping[str, Any]:
        """Return numbers for the status; waits until it is made, because readers of a status need all of them."""
        self._thread.join()
        return {"alive": False} if self._made is None else self._made.figures()

    def close(self) -> None:
        """Finish and end."""
        self._thread.join()
        if self._made is not None:
            self._made.close()

    def _run(self) -> None:
        try:
            made = self._make()
        except BaseException as error:  # noqa: BLE001 -- raised again by `assign`
            self._error = error
            log.error("fleet: nothing can be read: %s", error)  # noqa: TRY400 -- `assign` raises it
            self._failed()
            return
        with self._assigning:
            if self._wanted is not None:
                made.assign(self._wanted)
            self._made = made
