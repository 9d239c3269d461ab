"""Light ingestion: a thread and a handful of consumers for each cluster, straight into Delta tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_sink.fleet._reader import Assigned, SourceReader

_END_S = 30.0


@dataclass(frozen=True, slots=True)
class LightIngestion:
    """Keeps the contract of `Ingestion` with one `SourceReader` for each source.

    Attributes:
        readers: by source.
    """

    readers: Mapping[str, SourceReader]

    def assign(self, lanes: Assigned) -> None:
        """Read this from now on."""
        for source, reader in self.readers.items():
            reader.assign({lane: topics for lane, topics in lanes.items() if lane.source == source})

    def problems(self) -> Sequence[str]:
        """What does not go well now."""
        return [problem for reader in self.readers.values() for problem in reader.problems()]

    def figures(self) -> Mapping[str, Any]:
        """Consumers, rows, commits, rebalances and lag."""
        return {
            "consumers": sum(reader.consumers for reader in self.readers.values()),
            "rows": sum(reader.rows_written for reader in self.readers.values()),
            "commits": sum(reader.commits for reader in self.readers.values()),
            "alive": all(reader.alive for reader in self.readers.values()),
            "works": any(reader.works for reader in self.readers.values()),
            "rebalances": sum(reader.rebalances for reader in self.readers.values()),
            "lag": {
                f"{source}/{topic}": behind
                for source, reader in self.readers.items()
                for topic, behind in reader.lag().items()
            },
        }

    def close(self) -> None:
        """Bring in what was read and leave all groups."""
        for reader in self.readers.values():
            reader.end()
        for reader in self.readers.values():
            reader.join(_END_S)
