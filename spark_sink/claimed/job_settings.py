"""The settings of a job of claimed ingestion."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignors.claims import Form, Lease, Picking
from spark_sink.errors import OptionError
from spark_sink.formats.quarantine_addresses import refuse_quarantine_address
from spark_sink.lake.mistaken_addresses import refuse_mistaken
from spark_sink.lake.ops_log.ops_settings import OpsSettings
from spark_sink.lake.storage_names import refuse_misspelt
from spark_sink.lake.table_addresses import PLACEHOLDER, is_iceberg
from spark_sink.sink.row_options import RowOptions

_DAY_S = 86_400.0
_MOST_RUNTIME_S = 30 * _DAY_S
_MOST_PARTITIONS = 1_000_000
_MOST_RECORDS = 1_000_000_000
_LEAST_BYTES, _MOST_BYTES = 16 << 20, 1 << 40
_QUARTERS = 4
_TEXTS = {
    "name": "--group",
    "table": "--table",
    "database": "--database",
    "pattern": "--subscribe-pattern",
    "owner": "--owner",
    "workers_topic": "--workers-topic",
    "workers_redis": "--workers-redis",
}
"""Settings that are not an empty text, and their flags."""
_ROUNDS_PER_LEASE = 3
_MOST_QUEUE_KB = 2_097_151  # librdkafka's limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedSettings:
    """The settings of one of the jobs that share the partitions of some topics.

    Attributes:
        name: name of the positions in the tables; the same for all jobs of one set.
        table: address of the table, `iceberg://catalog.namespace.table` of an Iceberg table; `{topic}` in it stands for
            the topic.
        database: SQLAlchemy's address of the claims.
        kafka: client properties with Kafka's names, at least `bootstrap.servers`.
        topics: names.
        pattern: adds all topics whose whole name matches.
        claims_table: table of the claims; one for each set of jobs.
        owner: name of this job for others; the host and process by default.
        partitions: number claimed at a time.
        records: maximum number of records read between two commits.
        memory_bytes: approximate memory for records that are not in a table yet: a quarter for records that librdkafka
            has received, a quarter for those of a round, and the rest for copies and files while they are written.
        lease: lease of the claims.
        picking: order in which partitions are claimed.
        form: form of claiming.
        discover_s: interval at which topics are listed.
        idle_s: pause if there is no partition to claim, or after an error.
        fail_on_data_loss: stop reading a partition whose unread records retention has deleted; else only log an error.
        poll_timeout_s: end a round after this time without an expected record.
        storage: options of the object store and of the catalog.
        rows: how records become rows of the table; the same for all jobs of one set.
        metrics_port: port of the Prometheus endpoint; None for none.
        ops: settings of the ops log; None for none.
        once: end when the records that were there at the start are in the tables.
        workers_topic: the autoscaler's topic with the workers of each topic, which the job follows; None for none.
        workers_redis: Redis that announces changes of that topic; None for none.
        max_runtime_s: end after this time, seconds, with `once`; None for no limit.
    """

    name: str
    table: str
    database: str
    kafka: Mapping[str, str]
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    claims_table: str = "partition_claims"
    owner: str | None = None
    partitions: int = 16
    records: int = 200_000
    memory_bytes: int = 256 << 20
    lease: Lease = field(default_factory=Lease)
    picking: Picking = field(default_factory=lambda: Picking(worth_records=1_000, longest_s=5))
    form: Form = Form.LOCKING
    discover_s: float = 30.0
    idle_s: float = 0.5
    fail_on_data_loss: bool = False
    poll_timeout_s: float = 30.0
    storage: Mapping[str, str] = field(default_factory=dict)
    rows: RowOptions = field(default_factory=RowOptions)
    metrics_port: int | None = None
    ops: OpsSettings | None = None
    once: bool = False
    max_runtime_s: float | None = None
    workers_topic: str | None = None
    workers_redis: str | None = None

    def __post_init__(self) -> None:
        for name, flag in _TEXTS.items():
            if (text := getattr(self, name)) is not None and not text.strip():
                raise OptionError(f"{flag} is empty (the setting {name!r} of a job)")
        refuse_mistaken(self.table, (PLACEHOLDER,))
        refuse_quarantine_address(self.table)
        refuse_misspelt(self.storage)
        if self.ops is not None and not is_iceberg(self.table):
            self.ops.refuse_near([self.table])
        for name, least, most in (
            ("partitions", 1, _MOST_PARTITIONS),
            ("records", 1, _MOST_RECORDS),
            ("memory_bytes", _LEAST_BYTES, _MOST_BYTES),
        ):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
                raise OptionError(f"{name}={given!r}, need a whole number, {least} to {most}")
        for name in ("discover_s", "idle_s", "poll_timeout_s"):
            given = getattr(self, name)
            if not isinstance(given, int | float) or not 0 < given <= _DAY_S:  # also catches nan
                raise OptionError(f"{name}={given!r}, need more than 0, and {_DAY_S:g} at most")
        if self.workers_redis is not None and self.workers_topic is None:
            raise OptionError(
                "--workers-redis has no effect without --workers-topic: it announces changes of that topic"
            )
        if self.max_runtime_s is not None:
            self._check_runtime(self.max_runtime_s)

    def _check_runtime(self, given: float) -> None:
        if not self.once:
            raise OptionError("--max-runtime has no effect without --once: a job without it runs until a signal")
        if not 0 < given <= _MOST_RUNTIME_S:  # also catches nan
            raise OptionError(f"max_runtime={given!r}, need more than 0 seconds, and {_MOST_RUNTIME_S:g} at most")

    @property
    def round_bytes(self) -> int:
        """Maximum number of bytes of the records of a round."""
        return self.memory_bytes // _QUARTERS

    @property
    def round_s(self) -> float:
        """Time that a round of a job should take that follows the numbers of workers, seconds."""
        return self.lease.lease_s / _ROUNDS_PER_LEASE

    @property
    def queue_kb(self) -> int:
        """Size of librdkafka's queue of received records, kilobytes."""
        return min(self.memory_bytes // _QUARTERS >> 10, _MOST_QUEUE_KB)
