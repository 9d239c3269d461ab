"""`.format("delta-exactly-once")`: tasks write Parquet, the driver compares and swaps.

write    in each task: rows -> data files in the table's folder -> a message with what they hold
commit   in one Python process beside the driver, kept between batches: ranges of the batch from Spark's offset log,
         positions from the table, `_commit.commit`
abort    nothing: Spark may call it after a commit that went through, and deleting would lose rows
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from spark_sink._checkpoint import batch_offset
from spark_sink._commit import Batch, Outcome, commit
from spark_sink._delta import DeltaLakeTable, TableSettings
from spark_sink._errors import OptionError, TableError
from spark_sink._landing import Landing, Layout, normal_schema, storage_errors
from spark_sink._storage import filesystem, storage_options, table_uri
from spark_sink._table import DataFile

_PROPERTY = "tableproperty."


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """What the sink was asked for, checked.

    Attributes:
        path: address of the table.
        group: the consumer group whose positions the table keeps.
        checkpoint: the query's checkpointLocation.
        agent: the agent's name, for the table's history.
        storage: options of the object store.
        table: how a table is made and changed.
    """

    path: str
    group: str
    checkpoint: str
    agent: str = ""
    storage: Mapping[str, str] = field(default_factory=dict)
    table: TableSettings = field(default_factory=TableSettings)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "SinkOptions":
        """Read the options that were given to `.option(...)`; names are compared without case, as Spark does.

        Raises:
            OptionError: an option is missing or has no meaning.
        """
        given = {name.lower(): value for name, value in options.items()}
        for name in ("path", "kafka.group.id", "checkpointLocation"):
            if not given.get(name.lower()):
                raise OptionError(f"delta-exactly-once needs the option {name!r}")
        merge = given.get("mergeschema", "false").lower()
        if merge not in {"true", "false"}:
            raise OptionError(f"option 'mergeSchema': {merge!r}, need true or false")
        layout = Layout(
            partition_columns=tuple(one.strip() for one in given.get("partitionby", "").split(",") if one.strip()),
            compression=given.get("compression", "zstd"),
        )
        properties = {
            name[len(_PROPERTY) :]: value for name, value in options.items() if name.lower().startswith(_PROPERTY)
        }
        return cls(
            path=table_uri(given["path"]),
            group=given["kafka.group.id"],
            checkpoint=given["checkpointlocation"],
            agent=given.get("agent", ""),
            storage=storage_options(options),
            table=TableSettings(layout=layout, properties=properties, merge_schema=merge == "true"),
        )


class DeltaExactlyOnceSink(DataSource):
    """Delta table that has every record once, whoever replays, dies or comes back.

    Options: `path`, `kafka.group.id`, `checkpointLocation`, `partitionBy` (columns, by commas), `mergeSchema`,
    `compression`, `storage.<name>` for the object store, `tableProperty.<name>` for a new table.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "delta-exactly-once"

    def streamWriter(self, schema: StructType, overwrite: bool) -> "SinkWriter":  # noqa: N802, FBT001 -- Spark's signature
        """Make the writer; Spark does so once for the tasks and once for each commit."""
        if overwrite:
            raise OptionError("delta-exactly-once knows the output mode 'append' only")
        return SinkWriter(SinkOptions.parse(self.options), normal_schema(to_arrow_schema(schema, timezone="UTC")))


@dataclass
class Landed(WriterCommitMessage):
    """What one task has written."""

    files: list[DataFile]


class SinkWriter(DataSourceStreamArrowWriter):
    """Writes and commits the batches of one query.

    Args:
        options: of the sink.
        schema: of the rows.
    """

    def __init__(self, options: SinkOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Landed:
        """Write the rows of one task into data files."""
        options = self._options
        with storage_errors(options.path):
            files = filesystem(options.path, options.storage, make=True)
        landing = Landing(files, self._schema, options.table.layout)
        for batch in iterator:
            landing.write(batch)
        return Landed(landing.close())

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's name
        """Bring a batch into the table, exactly once."""
        offset = batch_offset(self._options.checkpoint, batchId, self._options.storage)
        files = [file for message in messages if isinstance(message, Landed) for file in message.files]
        agent = self._options.agent
        batch = Batch(offset=offset, files=files, schema=self._schema, number=batchId, agent=agent)
        commit_batch(self._options, batch)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's name
        """Do nothing: the commit may have gone through, and then its files belong to the table."""


def commit_batch(options: SinkOptions, batch: Batch) -> Outcome:
    """Bring a batch into the table of these options.

    Raises:
        HoleError: rows before this batch are missing.
        TableError: the table cannot take the batch.
    """
    table = _table(options)
    if batch.number > 0:
        if not batch.offset and not batch.files:
            return Outcome()
        # The first batch makes the table even where it holds no partition, so a missing one was deleted.
        if table.refresh() is None:
            raise TableError(
                f"{options.path}: there is no table, but the checkpoint {options.checkpoint} is at batch "
                f"{batch.number}; nothing was written. Restore the table, or start again with a new checkpoint"
            )
    return commit(table, batch)


# Spark keeps the committing process between batches, and a handle that is kept reads only what is new.
_TABLES: dict[str, tuple[SinkOptions, DeltaLakeTable]] = {}


def _table(options: SinkOptions) -> DeltaLakeTable:
    known = _TABLES.get(options.path)
    if known is None or known[0] != options:
        known = _TABLES[options.path] = (
            options,
            DeltaLakeTable(options.path, options.group, options.storage, options.table),
        )
    return known[1]
