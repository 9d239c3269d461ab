"""The job loop: claim, read, write to the table, commit, disown.

The table decides. Its compare and swap takes each record once, from any sender; claims only keep two jobs from doing
the same work. So a job that was stopped for an hour and resumes with unwritten records does no harm: its lease has
ended, its claims are refused, and the table already has the records.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from assignors.claims import Claim, ClaimLostError, ClaimsAwayError, Visit
from assignors.errors import AssignorError
from assignors.fleet import FleetTopic
from spark_sink.claimed.caught_up import Ending, StartBacklog
from spark_sink.claimed.job_parts import JobParts
from spark_sink.claimed.job_progress import JobProgress, Round
from spark_sink.claimed.job_settings import ClaimedSettings
from spark_sink.claimed.labelled_batches import Batches
from spark_sink.claimed.partitions_per_job import RoundSize, surplus
from spark_sink.claimed.round_bytes import RoundBytes
from spark_sink.claimed.round_reader import UNREADABLE, RoundReader
from spark_sink.errors import SparkSinkError
from spark_sink.fleet.write_queue import BatchWriter, ReadBatch, WriteOutcome
from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.ranges.lag_seconds import UnreadAges

log = logging.getLogger(__name__)

_SETTLE_S = 2.0
_NAMED = 5


class ClaimedIngest:
    """Ingests the partitions that it claims; used by one thread.

    Args:
        settings: settings of the job.
        parts: the parts of the job.
        observe: called after each round.
    """

    def __init__(
        self, settings: ClaimedSettings, parts: JobParts, observe: Callable[[Round], None] = lambda _: None
    ) -> None:
        self._observe = observe
        self._settings = settings
        self._parts = parts
        self._batch_writer = BatchWriter(parts.writer, parts.ids)
        self._topics: dict[str, FleetTopic] = {}
        self._present: Collection[str] | None = None
        self._ages = UnreadAges(parts.logs.at_times)
        self._bytes = RoundBytes(settings.round_bytes)
        self._reader = RoundReader(parts, self._bytes, headers=settings.rows.headers)
        self._late_s: Mapping[str, float] = {}
        self._looked: float | None = None
        self._listed = -1  # number of partitions that the log has
        self._gone: set[tuple[str, int]] = set()
        self._progress = JobProgress(log.info)
        self._problem = ""
        self._refused: dict[str, Exception] = {}
        self._reported: dict[str, str] = {}
        self._backlog = StartBacklog() if settings.once else None
        self._whole = False  # whether the last list of topics was
        self._hastened = False
        self._settled = float("-inf")
        self._visited: dict[tuple[str, int], float] = {}
        self._size = RoundSize(most=settings.partitions, target_s=settings.round_s)
        self.holds = False  # whether partitions are, or may be, claimed

    def run(self, stop: threading.Event) -> Ending | None:
        """Ingest until `stop` is set, or with `once` until all is read; after an error, log it once and retry.

        Returns:
            How it has ended; None without `once`.
        """
        try:
            while not stop.is_set():
                done = self._try()
                self._observe(done)
                self._progress.note(done.rows, done.late_s, all_read=bool(done.claimed) and not done.refused)
                if self._backlog is not None and (ending := self._ending(self._backlog, done)) is not None:
                    return ending
                if not done.claimed or (done.refused and not done.rows):
                    stop.wait(self._settings.idle_s)
            return None if self._backlog is None else self._ending(self._backlog, Round(), over=True)
        finally:
            self._progress.end()
            self.close()

    def _ending(self, backlog: StartBacklog, done: Round, *, over: bool = False) -> Ending | None:
        """Compare the records from before the start with the tables: after each quiet round, and every few seconds."""
        if not over:
            backlog.note(done.refused, failed=done.failed)
        now = time.monotonic()
        if over or not done.rows or now - self._settled > _SETTLE_S:
            self._settled = now
            try:
                self._settle(backlog)
            except (AssignorError, *UNREADABLE) as error:
                log.debug("claims: positions are not known: %s", error)
        ending = backlog.ending(self._parts.paused() or (), over=over)
        if ending is Ending.READ:
            log.info("claims: the records that were there at the start are in the tables")
        elif backlog.lost and ending is Ending.REFUSED:
            log.warning("claims: bad records of before the start are gone, as the errors above say")
        elif ending is not None:
            names = sorted({key.topic for key in (*backlog.left, *backlog.unknown)})
            text = "claims: %d records of %d partitions are left from before the start: %s"
            log.warning(text, backlog.records, len(backlog.left), ", ".join(names[:_NAMED]))
        return ending

    def _settle(self, backlog: StartBacklog) -> None:
        backlog.see(self._topics, whole=self._whole)
        unknown = backlog.unknown
        backlog.add(self._parts.logs.beginnings(unknown), self._parts.logs.ends(unknown))
        topics = {key.topic for key in backlog.left}
        labels = self._labels({name for name in topics if name in self._topics})
        found = self._positions(labels)
        names = {label: name for name, label in labels.items()}
        backlog.settle({key._replace(topic=names[key.topic]): at for key, at in found.items() if key.topic in names})
        if backlog.known and not self._hastened:
            # Earlier visits may have set their due times to long after this job's end.
            self._parts.claims.hasten(backlog.left)
            self._hastened = True

    def close(self) -> None:
        """Disown all partitions; if the database is away, their leases end by themselves."""
        try:
            self._parts.claims.close()
        except ClaimsAwayError as error:
            log.warning("claims: not disowned: %s", error)

    def round(self) -> Round:
        """Claim some partitions, write their records, and disown the partitions.

        Raises:
            AssignorError: the cluster or the database of claims does not answer.
            SparkSinkError: records cannot be read, or the table cannot take them.
        """
        self._discover()
        if self._parts.paused() is None:  # soon known
            return Round(topics=self._present)
        self.holds = True
        try:
            return self._round()
        finally:
            self.holds = False

    def _round(self) -> Round:
        claims = self._claim()
        if not claims:
            return Round(topics=self._present)
        visits: dict[Claim, Visit] = {}
        began = time.monotonic()
        try:
            done, visits = self._visit(claims)
        finally:
            # Also after an error: the next job may succeed. Partitions without a visit are due immediately.
            self._parts.claims.disown({one: visits.get(one, Visit(more=True)) for one in claims})
        self._size.note(len(claims), time.monotonic() - began)
        return done

    def _claim(self) -> list[Claim]:
        """Claim the partitions of a round; with published numbers, no more than the job's share of each topic."""
        if self._settings.workers_topic is None:
            return self._parts.claims.claim(self._settings.partitions)
        claims = self._parts.claims.claim(self._size.partitions)
        workers = {topic: one.workers for topic, one in self._parts.numbers().items()}
        partitions = {name: topic.partitions for name, topic in self._topics.items()}
        over = surplus(claims, workers, partitions, self._visited)
        if over:
            self._parts.claims.disown(sorted(over))
        mine = [one for one in claims if one not in over]
        self._visited |= dict.fromkeys(map(_key, mine), time.monotonic())
        return mine

    def _try(self) -> Round:
        try:
            done = self.round()
        except (AssignorError, *UNREADABLE) as error:
            if str(error) != self._problem:
                log.error("claims: %s", error)  # noqa: TRY400 -- the message is enough
            self._problem, self._looked = str(error), None  # a topic may have been deleted
            return Round(failed=True, problem=str(error))
        self._problem = ""
        for topic, refusal in done.refused.items():
            if self._reported.get(topic) != str(refusal):
                log.error("claims: %s: %s", topic, refusal, extra={"topic": topic})
            self._looked = None
        self._reported |= {topic: str(refusal) for topic, refusal in done.refused.items()}
        return done

    def _discover(self) -> None:
        now = time.monotonic()
        if self._looked is not None and now - self._looked < self._settings.discover_s:
            return
        seen = self._parts.topics()
        self._topics, self._whole = {topic.name: topic for topic in seen.topics}, seen.whole
        self._present = frozenset(self._topics) if seen.whole else None
        wanted = {(topic.name, n) for topic in self._topics.values() for n in range(topic.partitions)}
        new = self._parts.claims.register(wanted)
        if new or len(wanted) != self._listed:
            self._listed = len(wanted)
            log.info("claims: %d topics, %d partitions, %d of them new", len(self._topics), len(wanted), new)
        self._ages.keep(TopicPartition(*key) for key in wanted)
        self._looked = now
        if not seen.whole:
            return  # a topic that cannot be described may still exist
        # A topic counts as deleted only after two consecutive answers without it.
        gone = self._parts.claims.known() - wanted
        self._parts.claims.forget(gone & self._gone)
        self._gone = gone
        self._visited = {key: at for key, at in self._visited.items() if key in wanted}

    def _visit(self, claims: Sequence[Claim]) -> tuple[Round, dict[Claim, Visit]]:
        self._refused = {}
        paused = self._parts.paused() or ()
        # The table of a paused topic is not touched either: someone may be working on it.
        labels = self._labels({one.topic for one in claims if one.topic in self._topics and one.topic not in paused})
        known = [_key(one) for one in claims if one.topic in labels]
        ranges, backlog = self._ranges(known, labels)
        wanted = [one for one in ranges.values() if one.begin < one.end]
        rows, held, unreadable = self._reader.read(wanted, labels, list(claims))
        self._refused |= unreadable
        wanted = self._bytes.covered(wanted)
        ranges |= {one.key: one for one in wanted}
        wanted = [one for one in wanted if one.begin < one.end]
        # Only partitions that are still held are written. The table would refuse duplicates, but at a cost.
        held = self._parts.claims.renew(held)
        mine = {TopicPartition(one.topic, one.partition) for one in held}
        read = [one for one in wanted if one.topic not in self._refused]
        written = self._write(rows, [one for one in read if one.key in mine], {one.key for one in read} - mine)
        names = {label: name for name, label in labels.items()}
        self._refused |= {names[label]: error for label, error in written.refused.items()}
        ended = {
            key: at for key in mine if (at := written.at(key._replace(topic=labels.get(key.topic, "")))) is not None
        }
        lost = self._commit({one: ended[key] for one in held if (key := _key(one)) in ended})
        visits = {
            one: Visit(records=ranges[key].records, more=backlog[key] > ranges[key].records)
            for one in held
            if (key := _key(one)) in ranges and labels[one.topic] not in written.recreated
        }
        # Without a pause they would be due together, and immediately, before partitions that can be read.
        out = self._refused.keys() | set(paused)
        unknown = {key for key in known if key not in ranges}
        visits |= {one: Visit(failed=True) for one in held if one.topic in out or _key(one) in unknown}
        lost += len(claims) - len(held)
        done = Round(
            claimed=len(claims),
            rows=written.rows,
            quarantined=written.quarantined,
            lost=lost,
            late_s=self._late_s,
            refused=dict(self._refused),
            topics=self._present,
        )
        return done, visits

    @contextmanager
    def _isolated(self, topics: Collection[str]) -> Iterator[None]:
        """Limit errors to the table of these topics: topics of other tables continue."""
        try:
            yield
        except (SparkSinkError, OSError) as error:
            if self._parts.writer.shared:
                raise
            self._refused |= dict.fromkeys(topics, error)

    def _labels(self, topics: set[str]) -> dict[str, str]:
        found: dict[FleetTopic, str] = {}
        for names in self._parts.writer.apart(sorted(topics)):
            with self._isolated(names):
                found |= self._parts.writer.label([self._topics[name] for name in sorted(names)])
        return {topic.name: label for topic, label in found.items()}

    def _positions(self, labels: Mapping[str, str]) -> dict[TopicPartition, int]:
        table: dict[TopicPartition, int] = {}
        for mine in self._parts.writer.apart(labels.values()):
            with self._isolated([name for name, label in labels.items() if label in mine]):
                table |= self._parts.writer.positions(mine)
        return table

    def _ranges(
        self, keys: Sequence[TopicPartition], labels: Mapping[str, str]
    ) -> tuple[dict[TopicPartition, Range], dict[TopicPartition, int]]:
        """Return the ranges to read and the available records, without partitions whose log does not answer."""
        table = self._positions(labels)
        keys = [key for key in keys if key.topic not in self._refused]
        ends = self._parts.logs.ends(keys)
        # A partition whose leader is silent keeps the others waiting once, not a second and longer time.
        beginnings = self._parts.logs.beginnings(ends)
        begins = {}
        for key in keys:
            if key not in ends or key not in beginnings:
                continue
            at = table.get(TopicPartition(labels[key.topic], key.partition))
            if at is not None and at < beginnings[key]:
                text = "claims: %s/%d: offsets %d to %d are gone by retention"
                log.error(text, *key, at, beginnings[key] - 1, extra={"topic": key.topic})
            begins[key] = beginnings[key] if at is None else at
        self._late_s = self._ages.look(begins, ends)
        backlog = {key: max(0, ends[key] - begin) for key, begin in begins.items()}
        granted = self._bytes.limit(self._settings.records, {key.topic for key in backlog}).admit(backlog)
        for topic, one in self._parts.numbers().items():
            mine = {key: count for key, count in granted.items() if key.topic == topic}
            if mine and one.max_poll_records is not None and sum(mine.values()) > one.max_poll_records:
                granted |= self._bytes.limit(one.max_poll_records, {topic}).admit(mine)
        return {key: Range(*key, begin, begin + granted[key]) for key, begin in begins.items()}, backlog

    def _write(self, rows: Batches, ranges: Sequence[Range], lost: set[TopicPartition]) -> WriteOutcome:
        """Write records to their tables."""
        if not ranges:
            return WriteOutcome()
        labels = rows.labels
        kept = rows.without({TopicPartition(labels[key.topic], key.partition) for key in lost})
        named = [one._replace(topic=labels[one.topic]) for one in ranges]
        topics = {labels[one.topic]: self._topics[one.topic] for one in ranges}
        written = self._batch_writer.write(ReadBatch(rows=kept, ranges=named, topics=topics))
        if written.recreated:
            log.warning("claims: recreated while they were read: %s", ", ".join(sorted(written.recreated)))
            self._looked = None
        return written

    def _commit(self, offsets: Mapping[Claim, int]) -> int:
        try:
            self._parts.claims.commit(offsets)
        except ClaimLostError as error:
            log.info("claims: %s", error)
            return len(error.lost)
        self._parts.hint({_key(one): at for one, at in offsets.items()})
        return 0


def _key(claim: Claim) -> TopicPartition:
    return TopicPartition(claim.topic, claim.partition)
