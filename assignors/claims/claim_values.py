"""The values of claims: who holds which partition, under which epoch, and until when."""

from dataclasses import dataclass
from enum import Enum

from assignors.claims import column_limits
from assignors.errors import ClaimsError

LONGEST_HOLD_S = LONGEST_PAUSE_S = 3600.0
SHORTEST_LEASE_S = 0.1
"""Less is over before the answer to the claim is there."""
MS = 1000


class Form(Enum):
    """How partitions are claimed.

    Attributes:
        LOCKING: lock free rows and skip those that another locks: one statement where the database has one for it.
        OPTIMISTIC: look without a lock, then write where `updated_at` is still what was seen; any database can do that.
        TWO_STEPS: lock, then write, in one transaction: LOCKING's way on MySQL, which cannot return what it updates.
    """

    LOCKING = "locking"
    OPTIMISTIC = "optimistic"
    TWO_STEPS = "two-steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """How long a claim lasts, on the database's clock.

    Attributes:
        lease_s: from the last claim, commit or renewal; then others may take the partition. A tenth of a second at
            least.
        hold_s: from the claim, however often it is renewed; an hour at most.
    """

    lease_s: float = 30.0
    hold_s: float = LONGEST_HOLD_S

    def __post_init__(self) -> None:
        column_limits.real("lease_s", self.lease_s, SHORTEST_LEASE_S, LONGEST_HOLD_S)
        column_limits.real("hold_s", self.hold_s, SHORTEST_LEASE_S, LONGEST_HOLD_S)
        if self.lease_s > self.hold_s:
            raise ClaimsError(f"lease_s={self.lease_s!r} is more than hold_s={self.hold_s!r}")

    @property
    def lease_ms(self) -> int:
        """In the table's unit."""
        return round(self.lease_s * MS)

    @property
    def hold_ms(self) -> int:
        """In the table's unit."""
        return round(self.hold_s * MS)


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """A partition that this owner holds.

    Attributes:
        topic: name.
        partition: number.
        epoch: the fencing token: rises with each claim of the partition, and no two claims ever have the same.
        committed_offset: where the holders before came to; None where none said so. A hint, as Kafka's offsets are.
        volume: records per second, smoothed over earlier visits.
        waited_s: since the claim before; None on the first.
    """

    topic: str
    partition: int
    epoch: int
    committed_offset: int | None = None
    volume: float = 0.0
    waited_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What a holder found; decides when the partition is due again.

    Attributes:
        records: read.
        more: whether there was more to read.
        failed: whether nothing could be read or written: the volume stays as it is, and others come first.
    """

    records: int = 0
    more: bool = False
    failed: bool = False

    def __post_init__(self) -> None:
        column_limits.whole("records", self.records, 0, column_limits.MOST_64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one partition stands, on the database's clock.

    Attributes:
        cluster: whose topic.
        topic: name.
        partition: number.
        owner: who holds it or held it last; None after it was disowned.
        held: whether its lease lasts.
        lease_s: what is left of the lease; 0 or less where it is free.
        free_s: for how long it has been free; 0 where it is held.
        due_s: until it is due; 0 or less where it is.
        picked_s: since it was claimed last; None where it never was.
        epoch: of the last claim.
        committed_offset: where holders came to.
        volume: records per second, smoothed.
    """

    cluster: str
    topic: str
    partition: int
    owner: str | None
    held: bool
    lease_s: float
    free_s: float
    due_s: float
    picked_s: float | None
    epoch: int
    committed_offset: int | None
    volume: float
