"""Light ingestion: a thread and a handful of consumers for each cluster, straight into Delta tables."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from spark_sink.fleet.received_bytes import BrokerZones, crossing
from spark_sink.fleet.source_reader import Assigned, SourceReader

_END_S = 30.0

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where an agent's bytes come from, and what others could not decode of what it wrote.

    Attributes:
        zone: of the agent; None where it is not set.
        price_per_gb: money per 10^9 bytes from another zone.
        zones: of the brokers, by source.
        quarantined: counts records in quarantine.
        began: seconds of a monotonic clock.
    """

    zone: str | None
    price_per_gb: float
    zones: Mapping[str, BrokerZones]
    quarantined: Callable[[], int]
    began: float = field(default_factory=time.monotonic)

    def figures(self, readers: Mapping[str, SourceReader]) -> dict[str, Any]:
        """Bytes by zone, what crossed zones, and records in quarantine."""
        received: Counter[str] = Counter()
        for source, reader in readers.items():
            received.update(self.zones[source].of(reader.received()))
        seconds = time.monotonic() - self.began
        return {
            "received": dict(received),
            "crossing": crossing(received, self.zone, self.price_per_gb, seconds),
            "quarantined": self.quarantined(),
        }


@dataclass(frozen=True, slots=True)
class LightIngestion:
    """Keeps the contract of `Ingestion` with one `SourceReader` for each source.

    Attributes:
        readers: by source.
        beside: what the status tells of zones and quarantines; None for nothing.
    """

    readers: Mapping[str, SourceReader]
    beside: Surroundings | None = None

    def assign(self, lanes: Assigned) -> None:
        """Read this from now on."""
        for source, reader in self.readers.items():
            reader.assign({lane: topics for lane, topics in lanes.items() if lane.source == source})

    def problems(self) -> Sequence[str]:
        """What does not go well now."""
        return [problem for reader in self.readers.values() for problem in reader.problems()]

    def figures(self) -> Mapping[str, Any]:
        """Consumers, rows, commits, rebalances, and lag in records and in seconds."""
        return {
            "consumers": sum(reader.consumers for reader in self.readers.values()),
            "rows": sum(reader.rows_written for reader in self.readers.values()),
            "commits": sum(reader.commits for reader in self.readers.values()),
            "alive": all(reader.alive for reader in self.readers.values()),
            "works": any(reader.works for reader in self.readers.values()),
            "rebalances": sum(reader.rebalances for reader in self.readers.values()),
            "lag": self._by_label(SourceReader.lag),
            "lag_s": self._by_label(SourceReader.lag_s),
            **(self.beside.figures(self.readers) if self.beside else {}),
        }

    def _by_label(self, ask: Callable[[SourceReader], Mapping[str, V]]) -> dict[str, V]:
        return {
            f"{source}/{topic}": one for source, reader in self.readers.items() for topic, one in ask(reader).items()
        }

    def close(self) -> None:
        """Bring in what was read and leave all groups."""
        for reader in self.readers.values():
            reader.end()
        for reader in self.readers.values():
            reader.join(_END_S)
