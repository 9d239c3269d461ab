"""`.format("iceberg-exactly-once")`: as `delta_sink`, into Iceberg tables."""

from collections.abc import Mapping

from spark_sink.sink.delta_sink import ExactlyOnceSink
from spark_sink.sink.sink_options import ICEBERG_FORMAT


class IcebergExactlyOnceSink(ExactlyOnceSink):
    """Iceberg tables that have every record exactly once, even after replays, crashes and pauses of writers.

    Options: `path` (`catalog.namespace.table`), `catalog.<name>` as in pyiceberg (`catalog.warehouse` alone, a folder,
    means an SQLite catalog in it), `routes` (JSON, regular expression of topics to table), `kafka.group.id`,
    `checkpointLocation`, `agent`, `mergeSchema`, `compression`, `compactEvery`, `storage.<name>` for a checkpoint on an
    object store, `tableProperty.<name>` for new tables; in a batch write of `foreachBatch` also `batchId`,
    and outside of a stream `startingOffsets` and `endingOffsets`.
    docs/reference/options.md lists the defaults.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "iceberg-exactly-once"

    def _given(self) -> Mapping[str, str]:
        return {**self.options, "tableFormat": ICEBERG_FORMAT}
