"""The settings of a job of claimed ingestion."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignors.claims import Form, Lease, Picking
from spark_sink.errors import OptionError

_DAY_S = 86_400.0
_MOST_PARTITIONS = 1_000_000
_MOST_RECORDS = 1_000_000_000  # all are held in memory until they are committed


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedSettings:
    """One job of many that share the partitions of some topics.

    Attributes:
        name: what the tables keep their positions under; the same for all jobs of one set.
        table: Delta table; `{topic}` in it stands for the topic.
        database: of the claims, SQLAlchemy's address.
        kafka: client properties, Kafka's names, `bootstrap.servers` at least.
        topics: names.
        pattern: besides, all topics whose whole name matches.
        claims_table: where the claims are; one for each set of jobs.
        owner: how others see this job; the host and process by default.
        partitions: claimed at a time.
        records: read between two commits, at most.
        lease: of the claims.
        picking: in which order partitions are claimed.
        form: how they are claimed.
        discover_s: topics are asked for so often.
        idle_s: pause where nothing is to be claimed, or something went wrong.
        fail_on_data_loss: read no partition on whose records retention took; else it is an error in the log.
        poll_timeout_s: end a round when no record came for this long although some are due.
        storage: options of the object store.
        include_headers: land the records' headers, too, in the column `headers`; the same for all jobs of one set.
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
    lease: Lease = field(default_factory=Lease)
    picking: Picking = field(default_factory=lambda: Picking(worth_records=1_000, longest_s=5))
    form: Form = Form.LOCKING
    discover_s: float = 30.0
    idle_s: float = 0.5
    fail_on_data_loss: bool = False
    poll_timeout_s: float = 30.0
    storage: Mapping[str, str] = field(default_factory=dict)
    include_headers: bool = False

    def __post_init__(self) -> None:
        for name, flag in (("name", "--group"), ("table", "--table"), ("database", "--database")):
            if not getattr(self, name):
                raise OptionError(f"{flag} is empty (the setting {name!r} of a job)")
        for name, most in (("partitions", _MOST_PARTITIONS), ("records", _MOST_RECORDS)):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
                raise OptionError(f"{name}={given!r}, need a whole number, 1 to {most}")
        for name in ("discover_s", "idle_s", "poll_timeout_s"):
            given = getattr(self, name)
            if not isinstance(given, int | float) or not 0 < given <= _DAY_S:  # also catches nan
                raise OptionError(f"{name}={given!r}, need more than 0, and {_DAY_S:g} at most")
