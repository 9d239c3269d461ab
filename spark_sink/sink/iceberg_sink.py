"""`.format("iceberg-exactly-once")`: as `delta_sink`, into Iceberg tables."""

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter
from pyspark.sql.types import StructType

from spark_sink.errors import OptionError
from spark_sink.sink.delta_sink import SinkWriter, batch_writer, stream_writer
from spark_sink.sink.sink_options import ICEBERG_FORMAT, batch_number


class IcebergExactlyOnceSink(DataSource):
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

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: FBT001 -- Spark's signature
        """Create the writer of one batch of `foreachBatch`, or of ranges that the options name."""
        options = {**self.options, "tableFormat": ICEBERG_FORMAT}
        return batch_writer(self.name(), options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> SinkWriter:  # noqa: N802, FBT001 -- Spark's signature
        """Create the writer; Spark calls this once for the tasks and once for each commit.

        Raises:
            OptionError: an option is invalid, or only for `foreachBatch`.
        """
        if batch_number(self.options) is not None:
            raise OptionError("option 'batchId' is for foreachBatch: a stream numbers its batches itself")
        options = {**self.options, "tableFormat": ICEBERG_FORMAT}
        return stream_writer(self.name(), options, schema, overwrite=overwrite)
