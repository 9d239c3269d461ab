"""Watches the topics of one cluster in a separate thread: names, ids and partitions."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from assignors.clients.silent_brokers import admin_properties, any_broker_answers
from assignors.errors import FleetError
from assignors.fleet.fleet_source import Source
from assignors.fleet.topic_descriptions import ABSENT_S, Sighting, ask_ids, sight

log = logging.getLogger(__name__)

_PROBE_S: Final = 1.5
_PROBES_S: Final = 2.0  # of the grace, which is two fifths of a session
_CLOSE_S: Final = 0.5
_RETRY_S: Final = 5.0


class ClusterWatch:
    """Reads the topics of one cluster in a separate thread, so that an unreachable cluster delays no other.

    Args:
        source: the cluster and its topics.
        interval_s: seconds between two reads.
        changed: called after a read that found a change.
    """

    def __init__(self, source: Source, interval_s: float, changed: Callable[[], None]) -> None:
        self.source = source
        self._interval_s = interval_s
        self._changed = changed
        self._seen = Sighting()
        self._look_now = threading.Event()
        self._ended = False
        self._admin: AdminClient | None = None
        self._thread = threading.Thread(target=self._run, name=f"fleet-{source.name}", daemon=True)

    def start(self) -> None:
        """Start the thread; a second call has no effect.

        Raises:
            FleetError: librdkafka does not know one of the source's properties, or its value is invalid.
        """
        self._client()
        if self._thread.ident is None:
            self._thread.start()

    def seen(self) -> Sighting:
        """Return the last result; never blocks."""
        return self._seen

    def look_now(self) -> None:
        """Read again soon: a topic may have been recreated."""
        self._look_now.set()

    def answers(self) -> bool:
        """Return whether a broker of the cluster answers now; waits a second or two."""
        brokers = self._seen.brokers or str(self.source.kafka["bootstrap.servers"]).split(",")
        return any_broker_answers(self._client(), self.source.kafka, brokers, _PROBE_S)

    def ids(self, names: Collection[str]) -> Callable[[], dict[str, str]]:
        """Request the current ids of topics, as `ask_ids` does."""
        return ask_ids(self._client(), self.source, names, self._seen.ids)

    def close(self) -> None:
        """End the thread, without waiting for a cluster that does not answer."""
        self._ended = True
        self._look_now.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)

    def look(self) -> Sighting:
        """Read the topics once."""
        try:
            self._seen = sight(self._client(), self.source, self._seen)
        except FleetError as error:
            self._seen = replace(self._seen, problems=(str(error),), answers=False, absent={})
        return self._seen

    def _run(self) -> None:
        while not self._ended:
            began = time.monotonic()
            before, found = self._seen, self.look()
            for problem in found.problems:
                if problem not in before.problems:
                    log.warning("fleet: %s", problem)
            if before.problems and not found.problems:
                log.info("fleet: source %r: all is well again", self.source.name)
            if found != before:
                self._changed()
            self._look_now.wait(max(0.0, self._pause_s(found) - (time.monotonic() - began)))
            self._look_now.clear()

    def _pause_s(self, found: Sighting) -> float:
        """Return the time between this look and the next one."""
        # A topic that is no longer listed was deleted, or the broker listed too few: the next answer decides.
        if found.absent:
            return min(self._interval_s, ABSENT_S)
        # A cluster that did not answer once would count as away until the next look.
        return self._interval_s if found.answers and found.known else min(self._interval_s, _RETRY_S)

    def _client(self) -> AdminClient:
        if self._admin is None:
            try:
                self._admin = AdminClient({"log_level": 2, **admin_properties(self.source.kafka)})
            except KafkaException as error:
                raise FleetError(f"source {self.source.name!r}: kafka: {error.args[0].str()}") from error
        return self._admin


def any_answers(watches: Sequence[ClusterWatch]) -> bool:
    """Return whether a broker of any cluster answers now; waits a second or two for any number of clusters."""
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def ask(watch: ClusterWatch) -> None:
        answers.put(watch.answers())

    for watch in watches:
        threading.Thread(target=ask, args=(watch,), name="fleet-probe", daemon=True).start()
    until = time.monotonic() + _PROBES_S
    for _ in watches:
        try:
            if answers.get(timeout=max(0.0, until - time.monotonic())):
                return True
        except queue.Empty:
            break
    return False
