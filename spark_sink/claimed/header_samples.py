"""Fetching for a job, with a periodic check whether headers are left out that a user may want."""

import logging
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.fetch.range_reader import fetch
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import Range

log = logging.getLogger(__name__)

_EVERY_S = 600.0


class SampledFetch:
    """Reads ranges as `fetch` does; if headers are left out, a topic whose records have headers is logged once.

    Headers cost a call per record, so not every batch is checked: once in ten minutes a batch of each topic is read
    with headers, and returned without them.

    Args:
        settings: settings of the fetch.
        read: reads ranges.
        clock: seconds of a monotonic clock.
        timeout_s: returns the time without a record after which a read of these topics fails, seconds; None for that
            of the settings.
    """

    def __init__(
        self,
        settings: FetchSettings,
        read: Callable[[Sequence[Range], FetchSettings], Iterator[pa.RecordBatch]] = fetch,
        clock: Callable[[], float] = time.monotonic,
        timeout_s: Callable[[Collection[str]], float | None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._read = read
        self._timeout_s = timeout_s
        self._clock = clock
        self._next: dict[str, float] = {}
        self._reported: set[str] = set()

    def __call__(self, ranges: Sequence[Range]) -> Generator[pa.RecordBatch, None, None]:
        """Read ranges."""
        timeout_s = self._timeout_s({one.topic for one in ranges})
        settings = self._settings if timeout_s is None else replace(self._settings, poll_timeout_s=timeout_s)
        if settings.headers or not self._due(ranges):
            yield from self._read(ranges, settings)
            return
        for batch in self._read(ranges, replace(settings, headers=True)):
            self._report(batch)
            yield batch.drop_columns(["headers"])

    def _due(self, ranges: Sequence[Range]) -> bool:
        now = self._clock()
        due = {one.topic for one in ranges if now >= self._next.get(one.topic, now)} - self._reported
        self._next |= dict.fromkeys(due, now + _EVERY_S)
        return bool(due)

    def _report(self, batch: pa.RecordBatch) -> None:
        found = set(pc.unique(batch.filter(pc.is_valid(batch.column("headers"))).column("topic")).to_pylist())
        for topic in sorted(found - self._reported):
            self._reported.add(topic)
            log.warning(
                "claims: %s: its records have headers, which are not landed: --include-headers lands them", topic
            )
