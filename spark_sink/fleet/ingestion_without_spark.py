"""Light ingestion: a thread and a handful of consumers for each cluster write directly to Delta tables."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from spark_sink.fleet.reader_and_writer_threads import Assigned, SourceReader
from spark_sink.fleet.received_bytes import BrokerZones, crossing

log = logging.getLogger(__name__)

_END_S = 5.0

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The inputs for an agent's figures of zones and quarantines.

    Attributes:
        zone: zone of the agent; None if it is not set.
        price_per_gb: price per 10^9 bytes from another zone.
        zones: zones of the brokers, by source.
        quarantined: counts quarantined records of the agent's tables; None if they have not been counted yet.
        began: start time, seconds of a monotonic clock.
    """

    zone: str | None
    price_per_gb: float
    zones: Mapping[str, BrokerZones]
    quarantined: Callable[[], int | None]
    began: float = field(default_factory=time.monotonic)

    def figures(self, readers: Mapping[str, SourceReader]) -> dict[str, Any]:
        """Return bytes by zone, the cross-zone traffic, and the number of quarantined records."""
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
    """Implements `Ingestion` with one `SourceReader` for each source.

    Attributes:
        readers: by source.
        surroundings: inputs for the figures of zones and quarantines; None for none.
    """

    readers: Mapping[str, SourceReader]
    surroundings: Surroundings | None = None

    def assign(self, lanes: Assigned) -> None:
        """Read these topics from now on."""
        for source, reader in self.readers.items():
            reader.assign({lane: topics for lane, topics in lanes.items() if lane.source == source})

    def problems(self) -> Sequence[str]:
        """Return the current problems."""
        return [problem for reader in self.readers.values() for problem in reader.problems()]

    def figures(self) -> Mapping[str, Any]:
        """Return consumers, rows, bad records, commits, rebalances, partitions read, and lag in records and seconds."""
        return {
            "consumers": sum(reader.consumers for reader in self.readers.values()),
            "rows": sum(reader.rows_written for reader in self.readers.values()),
            "bad_records": sum(reader.bad_records for reader in self.readers.values()),
            "commits": sum(reader.commits for reader in self.readers.values()),
            "committed_at": max((reader.committed_at for reader in self.readers.values()), default=0.0),
            "alive": all(reader.alive for reader in self.readers.values()),
            "works": any(reader.works for reader in self.readers.values()),
            "rebalances": sum(reader.rebalances for reader in self.readers.values()),
            "partitions": self._by_label(SourceReader.partitions),
            "overtaken": sum(reader.overtaken for reader in self.readers.values()),
            "lag": self._by_label(SourceReader.lag),
            "lag_s": self._by_label(SourceReader.lag_s),
            **(self.surroundings.figures(self.readers) if self.surroundings else {}),
        }

    def _by_label(self, ask: Callable[[SourceReader], Mapping[str, V]]) -> dict[str, V]:
        return {
            f"{source}/{topic}": one for source, reader in self.readers.items() for topic, one in ask(reader).items()
        }

    def close(self) -> None:
        """Write the records that were read, and leave all groups; all readers at the same time, for a limited time.

        Records that could not be written by then are read again by the next agents.
        """
        for reader in self.readers.values():
            reader.end()
        deadline = time.monotonic() + _END_S
        for source, reader in self.readers.items():
            reader.join(max(0.0, deadline - time.monotonic()))
            if not reader.ended:
                log.warning("fleet: %s: its records are not written after %g s: others read them again", source, _END_S)
