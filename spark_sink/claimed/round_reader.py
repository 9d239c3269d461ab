"""Reads the records of a round, and renews its claims meanwhile."""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import closing

from confluent_kafka import KafkaException

from assignors.claims import Claim
from spark_sink.claimed.job_parts import JobParts
from spark_sink.claimed.labelled_batches import Batches
from spark_sink.claimed.round_bytes import RoundBytes
from spark_sink.errors import SparkSinkError
from spark_sink.ranges.batch_offset import Range

log = logging.getLogger(__name__)

UNREADABLE = (SparkSinkError, KafkaException, OSError)
"""The errors of topics that cannot be read."""
_RENEW_PER_LEASE = 3
_HOPELESS = 3
"""If this many topics cannot be read, and none can, the rest of the round is skipped."""


class RoundReader:
    """Reads the ranges of a round; used by one thread.

    Args:
        parts: the parts of the job.
        counted: counts the bytes, and ends the reading.
        headers: whether the records have their headers.
    """

    def __init__(self, parts: JobParts, counted: RoundBytes, *, headers: bool) -> None:
        self._parts = parts
        self._bytes = counted
        self._headers = headers

    def read(
        self, ranges: Sequence[Range], labels: Mapping[str, str], held: list[Claim]
    ) -> tuple[Batches, list[Claim], dict[str, Exception]]:
        """Read all ranges at once; after an error read topic by topic, so that one bad topic stops no other.

        Args:
            ranges: what to read.
            labels: the table's label of each topic.
            held: the claims to renew.

        Returns:
            The rows, the claims that are still held, and the errors of topics that cannot be read.
        """
        topics = sorted({one.topic for one in ranges})
        self._bytes.start()
        try:
            return *self._fetch(ranges, Batches(labels, self._headers), held), {}
        except UNREADABLE as error:
            if len(topics) == 1:
                return Batches(labels, self._headers), held, dict.fromkeys(topics, error)
            log.info("claims: %s; reading %d topics one by one", error, len(topics))
        rows, failed = Batches(labels, self._headers), dict[str, Exception]()
        self._bytes.start()
        for number, topic in enumerate(topics):
            if self._bytes.reached:
                break
            part = Batches(labels, self._headers)
            try:
                part, held = self._fetch([one for one in ranges if one.topic == topic], part, held)
            except UNREADABLE as error:
                failed[topic] = error
                if len(failed) == number + 1 >= _HOPELESS:
                    raise
            else:
                rows.extend(part)
        return rows, held, failed

    def _fetch(self, ranges: Sequence[Range], rows: Batches, held: list[Claim]) -> tuple[Batches, list[Claim]]:
        renewed = time.monotonic()
        with closing(self._parts.fetch(ranges)) as batches:
            for batch in batches:
                rows.add(batch)
                self._bytes.count(batch)
                if self._bytes.reached:
                    break
                if time.monotonic() - renewed > self._parts.claims.lease.lease_s / _RENEW_PER_LEASE:
                    held, renewed = self._parts.claims.renew(held), time.monotonic()
        return rows, held
