"""The values of claims: the owner of each partition, its epoch, and the end of its lease."""

from dataclasses import dataclass
from enum import Enum

from assignors.claims import column_limits
from assignors.errors import ClaimsError

LONGEST_HOLD_S = LONGEST_PAUSE_S = 3600.0
SHORTEST_LEASE_S = 0.1
"""A shorter lease could end before the answer to the claim arrives."""
MS = 1000


class Form(Enum):
    """The form of claiming.

    Attributes:
        LOCKING: lock free rows and skip rows that are locked: one statement if the database supports it.
        OPTIMISTIC: read without a lock, then write if `updated_at` is unchanged; works on any database.
        TWO_STEPS: lock, then write, in one transaction: used for LOCKING on MySQL, which cannot return updated rows.
    """

    LOCKING = "locking"
    OPTIMISTIC = "optimistic"
    TWO_STEPS = "two-steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The duration of a claim, by the database's clock.

    Attributes:
        lease_s: time from the last claim, commit or renewal until others may take the partition. At least a tenth of a
            second.
        hold_s: longest time from the claim, however often it is renewed; at most an hour.
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
        committed_offset: position of the previous holders; None if none committed. A hint, as Kafka's offsets are.
        volume: records per second, smoothed over earlier visits.
        waited_s: time since the previous claim; None on the first.
    """

    topic: str
    partition: int
    epoch: int
    committed_offset: int | None = None
    volume: float = 0.0
    waited_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The result of a holder's visit; it decides when the partition is due again.

    Attributes:
        records: number of records read.
        more: whether there were more records to read.
        failed: whether reading or writing failed: the volume does not change, and other partitions come first.
    """

    records: int = 0
    more: bool = False
    failed: bool = False

    def __post_init__(self) -> None:
        column_limits.whole("records", self.records, 0, column_limits.MOST_64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The status of one partition, by the database's clock.

    Attributes:
        cluster: the cluster of the topic.
        topic: name.
        partition: number.
        owner: the current or the last holder; None after the partition was disowned.
        held: whether its lease has not ended.
        lease_s: rest of the lease; 0 or less if the partition is free.
        free_s: time since the partition is free; 0 if it is held.
        due_s: time until the partition is due; 0 or less if it is due.
        picked_s: time since the last claim; None if it was never claimed.
        epoch: epoch of the last claim.
        committed_offset: position of the holders.
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
