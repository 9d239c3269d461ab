"""The result of one round of a job."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The result of one round.

    Attributes:
        claimed: partitions.
        rows: records written to the table and its quarantine.
        quarantined: those of them that could not be decoded.
        lost: claims that were already lost.
        late_s: age of the oldest unread record when its topic was claimed, by topic.
        topics: the topics that exist; None while one of them could not be described.
        failed: whether the round as a whole failed: a server does not answer, or no topic can be read.
        problem: why it failed.
        refused: reason why a topic's records were not written, by topic; other topics of the round are not affected.
    """

    claimed: int = 0
    rows: int = 0
    quarantined: int = 0
    lost: int = 0
    late_s: Mapping[str, float] = field(default_factory=dict)
    topics: Collection[str] | None = None
    failed: bool = False
    problem: str = ""
    refused: Mapping[str, Exception] = field(default_factory=dict)
