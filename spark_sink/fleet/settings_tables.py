"""The tables of a fleet's settings file: its clusters, its membership, and the agents per topic.

It refuses sources that are not in the file: their names would have no effect, and no agent would say so.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from assignors.clients import topic_name
from assignors.settings import Real, Whole, no_boolean, proposal
from spark_sink.errors import OptionError

_STRICT = ConfigDict(extra="forbid", frozen=True)
# Names are parts of groups' names, of tables' addresses and of the positions that tables keep.
_NO_NAME = ("/", "\\", "{", "}")
_REMOVED = "session_s of the fleet, after which a silent agent is removed"
_SHARED = "assignment of the fleet, which gives the partitions of a topic to its agents"
_WITHOUT_EFFECT = {
    "group.id": "name of the fleet, with which the names of its groups begin",
    "group.instance.id": "agent, the permanent name of an agent",
    "group.protocol": _SHARED,
    "group.remote.assignor": _SHARED,
    "heartbeat.interval.ms": _REMOVED,
    "max.poll.interval.ms": _REMOVED,
    "max.poll.records": "memory_bytes of the fleet, the maximum that an agent reads ahead",
    "partition.assignment.strategy": _SHARED,
    "session.timeout.ms": _REMOVED,
}
"""Properties that no consumer of a fleet gets, and the settings in their place."""


def _named(value: str) -> str:
    if value != value.strip() or not value or any(one in value for one in _NO_NAME):
        raise ValueError(
            f"{value!r} is not a name: one character or more, no space around it, none of {' '.join(_NO_NAME)}"
        )
    return value


Name = Annotated[str, AfterValidator(_named)]


def _effective(kafka: dict[str, str]) -> dict[str, str]:
    for name, instead in _WITHOUT_EFFECT.items():
        if name in kafka:
            raise ValueError(f"{name!r} has no effect in a fleet; set {instead}")
    return kafka


class SourceSettings(BaseModel):
    """One cluster."""

    model_config = _STRICT

    bootstrap_servers: str = Field(description="Kafka brokers, host:port by commas.")
    topics: tuple[str, ...] = Field((), description="Names.")
    pattern: str | None = Field(None, description="Regular expression of whole names.")
    kafka: Annotated[dict[str, str], AfterValidator(_effective)] = Field(
        default_factory=dict, description="Kafka client properties."
    )


class StaticAgent(BaseModel):
    """One agent of a static fleet."""

    model_config = _STRICT

    id: Name
    capacity: Real = 1.0
    zone: str | None = None


class KafkaMembership(BaseModel):
    """Membership by Kafka's group protocol."""

    model_config = _STRICT

    kind: Literal["kafka"] = "kafka"
    home: str | None = Field(None, description="Name of the source that is the home cluster; the first by default.")


class RedisMembership(BaseModel):
    """Membership by Redis."""

    model_config = _STRICT

    kind: Literal["redis"]
    url: str = Field(description="redis://host:port/db")


class StaticMembership(BaseModel):
    """Membership from the configuration."""

    model_config = _STRICT

    kind: Literal["static"]
    agents: tuple[StaticAgent, ...]


def _with_kind(value: object) -> object:
    return {"kind": "kafka", **value} if isinstance(value, dict) else value


AnyMembership = Annotated[
    Annotated[KafkaMembership | RedisMembership | StaticMembership, Field(discriminator="kind")],
    BeforeValidator(_with_kind),
]
"""Kafka's, if no kind is given."""


class WorkersSettings(BaseModel):
    """Agents per topic."""

    model_config = _STRICT

    default: Whole | None = Field(1, description="Agents of a topic, 1 or more; leave a topic out to not read it.")
    patterns: dict[str, Whole] = Field(default_factory=dict, description="Regular expression of names to number.")
    overrides: dict[str, Annotated[int | tuple[str, ...], BeforeValidator(no_boolean)]] = Field(
        default_factory=dict, description="By hand: number or agents."
    )
    file: Path | None = Field(None, description="JSON file of overrides, read again when it changes.")
    topic: Annotated[str, AfterValidator(topic_name)] | None = Field(
        None, description="Workers topic of the autoscaler, on the home cluster."
    )
    redis: str | None = Field(
        None, description="Redis that announces changes of the topic; by default that of the membership."
    )
    weights: dict[str, Real] = Field(
        default_factory=dict, description="By hand: volume of a topic relative to the others, for balance = 'volume'."
    )


def refuse_unknown_sources(names: Iterable[str], sources: Collection[str], setting: str) -> None:
    """Refuse a name `<source>/<topic>` whose source is not in the file.

    Args:
        names: of topics, with or without a source.
        sources: the names of the file's sources.
        setting: the setting with the names, for the message.

    Raises:
        OptionError: there is no such source.
    """
    for name in names:
        source, slash, topic = name.partition("/")
        if slash and source not in sources:
            known = proposal(name, [f"{one}/{topic}" for one in sources]) or f"known are {', '.join(sources)}"
            raise OptionError(f"{setting} {name!r}: there is no source {source!r}; {known}")
