"""The membership of a query's reader while the query is alive, and the watch that ends it with the query."""

import atexit
import os
import signal
import threading
from pathlib import Path
from types import FrameType

import structlog

from spark_sink.kafka.client_property_names import librdkafka_config
from spark_sink.kafka.pause_watch import PausedTopics
from spark_sink.options.source_options import SourceOptions
from spark_sink.source.early_membership import EARLY
from spark_sink.source.group_membership import KafkaMembership
from spark_sink.source.orphan_watch import OrphanWatch
from spark_sink.source.ownership_telemetry import AssignmentFile, AssignmentListener, Telemetry
from spark_sink.source.record_sizes import RecordSizes, reader
from spark_sink.source.starting_positions import Positions
from spark_sink.source.trigger_steps import BatchPlanner

_log = structlog.get_logger("azimuth.source")


class MembershipSession:
    """Membership of this process while its query is alive."""

    def __init__(self, options: SourceOptions) -> None:
        self._lock = threading.RLock()
        self._pauses = PausedTopics(librdkafka_config(options.kafka), options.group)
        self._feed = BatchPlanner(
            options,
            EARLY.take(options) or KafkaMembership(options),
            positions=_positions(options),
            listeners=_listeners(options),
            paused=self._pauses,
            sizes=None if options.limits.max_bytes is None else RecordSizes(reader(options.fetch)),
        )
        self._watch = OrphanWatch(
            asleep=self._asleep,
            dead=self._dead,
            patience_s=options.session_timeout_s,
            silence_s=options.max_poll_interval_s,
        )
        self._pauses()  # begins to read them while the member joins
        self._closing = False
        # Spark ends the reader with SIGTERM, and calls `stop` only if the handler raises. It may raise just before that
        # call, and then only this leaves the group.
        signal.signal(signal.SIGTERM, self._end)
        atexit.register(self.close)
        self._watch.start()

    def __enter__(self) -> BatchPlanner:
        self._watch.__enter__()
        self._lock.acquire()
        return self._feed

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self._watch.__exit__()

    def close(self) -> None:
        """Stop the watch and leave the group. A second call has no effect."""
        if self._closing:
            return
        self._closing = True
        atexit.unregister(self.close)
        self._watch.stop()
        with self._lock:
            self._feed.leave()
        self._pauses.close()

    def _end(self, _signal: int, _frame: FrameType | None) -> None:
        # Spark closes the connection, at which the reader leaves, and sends the signal twice within a millisecond. The
        # first of the three starts the leave, and the other two must not interrupt it.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if not self._closing:
            raise SystemExit(0)

    def _asleep(self, reason: str) -> None:
        _log.warning("the query makes no progress; its partitions go to other members until it does", reason=reason)
        with self._lock:
            self._feed.leave()

    def _dead(self, reason: str) -> None:
        _log.warning("the query is dead; the reader leaves the group and ends", reason=reason)
        # The main thread may hold the lock while it waits for a broker; leave without it, because the process ends
        # here.
        self._feed.leave()
        os._exit(1)


def _listeners(options: SourceOptions) -> list[AssignmentListener]:
    found: list[AssignmentListener] = []
    if options.telemetry:
        found.append(Telemetry(options.telemetry, options.agent or f"reader-{os.getpid()}"))
    if options.holding:
        found.append(AssignmentFile(Path(options.holding)))
    return found


def _positions(options: SourceOptions) -> Positions | None:
    if options.positions is None:
        return None
    # Imported here, so that a query without a table needs no deltalake.
    from spark_sink.lake.positions_in_delta_log import positions

    table, group, storage = options.positions, options.group, dict(options.storage)
    return lambda partitions: positions(table, group, storage, partitions=partitions)
