"""The job loop: claim, read, bring into the table, commit, disown.

The table decides. Its compare and swap takes each record once, whoever sends it; claims only keep two jobs from doing
the same work. So a job that was stopped for an hour and comes back with records in its hands does no harm: its lease is
over, its claims are refused, and what it still brings to the table is there already.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from confluent_kafka import KafkaException

from assignors.claims import Claim, ClaimLostError, ClaimsAwayError, Lease, Visit
from assignors.errors import AssignorError
from assignors.fleet import FleetTopic, Sighting
from spark_sink.claimed.job_settings import ClaimedSettings
from spark_sink.claimed.labelled_batches import Batches
from spark_sink.errors import SparkSinkError
from spark_sink.fleet.write_queue import Bringer, Brought, Parcel, Tables, TopicIds
from spark_sink.ranges.batch_limits import admit
from spark_sink.ranges.batch_offset import Range, TopicPartition

log = logging.getLogger(__name__)

_RENEW_PER_LEASE = 3


class Claims(Protocol):
    """What the loop needs of `PartitionClaims`."""

    lease: Lease

    def register(self, partitions: Iterable[tuple[str, int]]) -> int:
        """Make partitions known."""

    def known(self) -> set[tuple[str, int]]:
        """The partitions that are registered."""

    def forget(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Remove partitions."""

    def claim(self, most: int) -> list[Claim]:
        """Claim partitions."""

    def commit(self, offsets: Mapping[Claim, int]) -> None:
        """Say how far partitions have come."""

    def renew(self, claims: Iterable[Claim]) -> list[Claim]:
        """Renew leases; those still held."""

    def disown(self, visits: Mapping[Claim, Visit]) -> list[Claim]:
        """Give partitions back."""

    def close(self) -> None:
        """Disown what is held."""


class Writer(Tables, Protocol):
    """What the loop needs of `TableWriter`."""

    def label(self, topics: Collection[FleetTopic]) -> dict[FleetTopic, str]:
        """What each topic is called in its table; of one table."""

    def positions(self, labels: Collection[str]) -> dict[TopicPartition, int]:
        """How far the table of these labels has come."""


class Ends(Protocol):
    """What the loop needs of `PartitionOffsets`."""

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The exclusive end of each log."""

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the loop works with.

    Attributes:
        claims: of this job; the loop closes them.
        writer: of the tables.
        logs: how far the logs go.
        topics: asks the cluster for the topics; raises AssignorError where no broker answers.
        fetch: reads ranges.
        ids: asks the cluster for the ids of topics as they are now.
    """

    claims: Claims
    writer: Writer
    logs: Ends
    topics: Callable[[], Sighting]
    fetch: Callable[[Sequence[Range]], Iterator[pa.RecordBatch]]
    ids: TopicIds


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round did.

    Attributes:
        claimed: partitions.
        rows: records brought to the table.
        lost: claims that were not held any more.
    """

    claimed: int = 0
    rows: int = 0
    lost: int = 0


class ClaimedIngest:
    """Ingests the partitions that it claims; used by one thread.

    Args:
        settings: of the job.
        parts: what it works with.
    """

    def __init__(self, settings: ClaimedSettings, parts: Parts) -> None:
        self._settings = settings
        self._parts = parts
        self._bringer = Bringer(parts.writer, parts.ids)
        self._topics: dict[str, FleetTopic] = {}
        self._looked: float | None = None
        self._gone: set[tuple[str, int]] = set()
        self._problem = ""

    def run(self, stop: threading.Event) -> None:
        """Ingest until told to stop; what goes wrong is logged once and tried again."""
        try:
            while not stop.is_set():
                if not self._try().claimed:
                    stop.wait(self._settings.idle_s)
        finally:
            self.close()

    def close(self) -> None:
        """Disown what is held; where the database is away, the leases' end does."""
        try:
            self._parts.claims.close()
        except ClaimsAwayError as error:
            log.warning("claims: not disowned: %s", error)

    def round(self) -> Round:
        """Claim some partitions, bring in what they have, and give them back.

        Raises:
            AssignorError: the cluster or the database of claims does not answer.
            SparkSinkError: records cannot be read, or the table cannot take them.
        """
        self._discover()
        claims = self._parts.claims.claim(self._settings.partitions)
        if not claims:
            return Round()
        visits: dict[Claim, Visit] = {}
        try:
            done, visits = self._visit(claims)
        finally:
            # Also after an error: the next job may fare better. Those without a visit are due at once.
            self._parts.claims.disown({one: visits.get(one, Visit(more=True)) for one in claims})
        return done

    def _try(self) -> Round:
        try:
            done = self.round()
        except (AssignorError, SparkSinkError, KafkaException, OSError) as error:
            if str(error) != self._problem:
                log.error("claims: %s", error)  # noqa: TRY400 -- the sentence says it
            self._problem, self._looked = str(error), None  # a topic may be gone
            return Round()
        self._problem = ""
        return done

    def _discover(self) -> None:
        now = time.monotonic()
        if self._looked is not None and now - self._looked < self._settings.discover_s:
            return
        seen = self._parts.topics()
        self._topics = {topic.name: topic for topic in seen.topics}
        wanted = {(topic.name, n) for topic in self._topics.values() for n in range(topic.partitions)}
        self._parts.claims.register(wanted)
        self._looked = now
        if not seen.whole:
            return  # a topic that could not be described is not deleted
        # Gone twice in a row: what a broker could not say once is no deleted topic.
        gone = self._parts.claims.known() - wanted
        self._parts.claims.forget(gone & self._gone)
        self._gone = gone

    def _visit(self, claims: Sequence[Claim]) -> tuple[Round, dict[Claim, Visit]]:
        known = [one for one in claims if one.topic in self._topics]
        labels = self._labels({one.topic for one in known})
        ranges, backlog = self._ranges([TopicPartition(one.topic, one.partition) for one in known], labels)
        wanted = [one for one in ranges.values() if one.begin < one.end]
        rows = Batches(labels, self._settings.include_headers)
        held = list(claims)
        renewed = time.monotonic()
        for batch in self._parts.fetch(wanted) if wanted else ():
            rows.add(batch)
            if time.monotonic() - renewed > self._parts.claims.lease.lease_s / _RENEW_PER_LEASE:
                held, renewed = self._parts.claims.renew(held), time.monotonic()
        # Only what is still held is brought in. The table would sort it out, but not for nothing.
        held = self._parts.claims.renew(held)
        mine = {TopicPartition(one.topic, one.partition) for one in held}
        brought = self._bring_in(rows, [one for one in wanted if one.key in mine], {one.key for one in wanted} - mine)
        ended = {
            key: at for key in mine if (at := brought.at(key._replace(topic=labels.get(key.topic, "")))) is not None
        }
        lost = self._commit({one: ended[key] for one in held if (key := _key(one)) in ended})
        for refused in brought.refused.values():
            raise refused  # said, and tried again; what other tables took is committed
        visits = {
            one: Visit(records=ranges[key].records, more=backlog[key] > ranges[key].records)
            for one in held
            if (key := _key(one)) in ranges and labels[one.topic] not in brought.anew
        }
        return Round(claimed=len(claims), rows=brought.rows, lost=len(claims) - len(held) + lost), visits

    def _labels(self, topics: set[str]) -> dict[str, str]:
        found: dict[FleetTopic, str] = {}
        for names in self._parts.writer.apart(sorted(topics)):
            found |= self._parts.writer.label([self._topics[name] for name in sorted(names)])
        return {topic.name: label for topic, label in found.items()}

    def _ranges(
        self, keys: Sequence[TopicPartition], labels: Mapping[str, str]
    ) -> tuple[dict[TopicPartition, Range], dict[TopicPartition, int]]:
        """What to read, and how much there is; partitions whose log cannot be asked for now are left out."""
        table: dict[TopicPartition, int] = {}
        for mine in self._parts.writer.apart(labels.values()):
            table |= self._parts.writer.positions(mine)
        ends, beginnings = self._parts.logs.ends(keys), self._parts.logs.beginnings(keys)
        begins = {}
        for key in keys:
            if key not in ends or key not in beginnings:
                continue
            at = table.get(TopicPartition(labels[key.topic], key.partition))
            if at is not None and at < beginnings[key]:
                log.error("claims: %s/%d: offsets %d to %d are gone by retention", *key, at, beginnings[key] - 1)
            begins[key] = beginnings[key] if at is None else at
        backlog = {key: max(0, ends[key] - begin) for key, begin in begins.items()}
        granted = admit(backlog, self._settings.records)
        return {key: Range(*key, begin, begin + granted[key]) for key, begin in begins.items()}, backlog

    def _bring_in(self, rows: Batches, ranges: Sequence[Range], lost: set[TopicPartition]) -> Brought:
        """Bring records into their tables."""
        if not ranges:
            return Brought()
        labels = rows.labels
        kept = rows.without({TopicPartition(labels[key.topic], key.partition) for key in lost})
        named = [one._replace(topic=labels[one.topic]) for one in ranges]
        topics = {labels[one.topic]: self._topics[one.topic] for one in ranges}
        brought = self._bringer.bring_in(Parcel(rows=kept, ranges=named, topics=topics))
        if brought.anew:
            log.warning("claims: made anew while they were read: %s", ", ".join(sorted(brought.anew)))
            self._looked = None
        return brought

    def _commit(self, offsets: Mapping[Claim, int]) -> int:
        try:
            self._parts.claims.commit(offsets)
        except ClaimLostError as error:
            log.info("claims: %s", error)
            return len(error.lost)
        return 0


def _key(claim: Claim) -> TopicPartition:
    return TopicPartition(claim.topic, claim.partition)
