"""The record of one run of the demo: the values of report.json, checked; every key is optional."""

import math
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from spark_sink.errors import ReportError


class _Value(BaseModel):
    """A frozen value; null and nan mean the same as a missing key: not measured."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _drop_unmeasured(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        return {key: value for key, value in data.items() if not _unmeasured(value)}


def _unmeasured(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


class Event(_Value):
    """An event of an agent, `t` seconds after the start."""

    t: float
    kind: str
    agent: str = ""
    text: str = ""


class Ownership(_Value):
    """From `t` seconds on the agent owns exactly these partitions (indexes into `Timeline.partitions`)."""

    t: float
    agent: str
    generation: int = -1
    partitions: list[int] = []


class Lag(_Value):
    """Records produced and not yet committed to the table."""

    t: float
    records: float


class Commit(_Value):
    """Rows that one commit of an agent added to the table."""

    t: float
    agent: str
    rows: int


class Timeline(_Value):
    """The timeline of the run, in seconds after the start."""

    partitions: list[tuple[str, int]] = []
    events: list[Event] = []
    ownership: list[Ownership] = []
    lag: list[Lag] = []
    commits: list[Commit] = []

    @property
    def end_s(self) -> float:
        """The time of the last event or value."""
        known: list[Event | Ownership | Lag | Commit] = [*self.events, *self.ownership, *self.lag, *self.commits]
        return max((entry.t for entry in known), default=0.0)


class Shares(_Value):
    """Share of the produced bytes that left its zone, from 0 to 1, with each partitioner."""

    default: float | None = None
    az_aware: float | None = None


class Connections(_Value):
    """Open connections of each agent, and the total number of pairs of agent and topic with each assignor."""

    per_agent: dict[str, float] = {}
    hrw: float | None = None
    range: float | None = None
    round_robin: float | None = None


class PerAgent(_Value):
    """A count per agent, with each assignor."""

    hrw: dict[str, float] = {}
    range: dict[str, float] = {}
    round_robin: dict[str, float] = {}


Matrix = dict[str, dict[str, float]]
"""Bytes from the producer's zone to the leader's zone."""


class ZoneBytes(_Value):
    """Bytes by zone with each partitioner."""

    default: Matrix = {}
    az_aware: Matrix = {}


class Run(_Value):
    """One run of the demo. None: not measured."""

    rows: int | None = None
    expected_rows: int | None = None
    duplicates: int | None = None
    missing: int | None = None
    values_differ: int | None = None
    agents_killed: int | None = None
    takeover_seconds: float | None = None
    takeover_parts: dict[str, float] | None = None
    partitions_moved_on_kill: int | None = None
    partitions_owned_by_killed: int | None = None
    cross_zone_share: Shares = Shares()
    default_sample_share: float | None = None
    produced_bytes: float | None = None
    records_per_second: float | None = None
    records_per_core_second: float | None = None
    busy_seconds: float | None = None
    start_seconds: float | None = None
    freshness_p95_seconds: float | None = None
    price_per_gb: float | None = None
    connections: Connections = Connections()
    bytes_by_zone: ZoneBytes = ZoneBytes()
    partitions_per_agent: PerAgent = PerAgent()
    topics_per_agent: PerAgent = PerAgent()
    seconds: dict[str, float] = Field(default={})
    versions: dict[str, str] = Field(default={})
    cores: int | None = None
    notes: list[str] = []
    timeline: Timeline = Timeline()

    @field_validator("agents_killed", mode="before")
    @classmethod
    def _count_agents(cls, value: object) -> object:
        return len(value) if isinstance(value, list | tuple) else value

    @classmethod
    def parse(cls, report: Mapping[str, Any]) -> Self:
        """Check the values of a report.

        Raises:
            ReportError: a value has the wrong type; the message names its place.
        """
        try:
            return cls.model_validate(report)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the whole"
            raise ReportError(f"report.json, {place}: {first['msg']}; run `azimuth demo` again") from error
