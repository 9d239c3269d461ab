"""A source: one cluster, and which of its topics a fleet reads."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assignors.clients.topic_names import topic_name
from assignors.errors import NO_PATTERN, FleetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One cluster and the topics to read from it.

    Attributes:
        name: the fleet's name of the cluster.
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        topics: names.
        pattern: adds all topics whose whole name matches this regular expression, except internal ones.

    Raises:
        FleetError: neither topics nor pattern, an invalid name, or a pattern that is not a regular expression.
    """

    name: str
    kafka: Mapping[str, Any]
    topics: tuple[str, ...] = ()
    pattern: str | None = None

    def __post_init__(self) -> None:
        if not self.topics and self.pattern is None:
            raise FleetError(f"source {self.name!r}: give topics, a pattern, or both")
        for topic in self.topics:
            try:
                topic_name(topic)
            except ValueError as error:
                raise FleetError(f"source {self.name!r}: {error}") from error
        if not self.kafka.get("bootstrap.servers"):
            raise FleetError(f"source {self.name!r}: give bootstrap_servers, host:port by commas")
        try:
            re.compile(self.pattern or "")
        except NO_PATTERN as error:
            raise FleetError(
                f"source {self.name!r}: pattern {self.pattern!r} is not a regular expression: {error}"
            ) from error

    def wanted(self, names: Sequence[str]) -> list[str]:
        """Return the cluster's topics that the source selects, sorted."""
        pattern = None if self.pattern is None else re.compile(self.pattern)
        return sorted(
            name
            for name in names
            if name in self.topics or (pattern and not name.startswith("__") and pattern.fullmatch(name))
        )

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the selected topics that do not exist, one sentence each."""
        there = set(names)
        found = [f"source {self.name!r}: there is no topic {name!r}" for name in self.topics if name not in there]
        if self.pattern is not None and not any(
            re.fullmatch(self.pattern, name) for name in names if not name.startswith("__")
        ):
            found.append(f"source {self.name!r}: pattern {self.pattern!r} matches no topic")
        return found
