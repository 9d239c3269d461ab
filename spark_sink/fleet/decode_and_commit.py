"""The tables of one writer, each with its quarantine: makes rows of records, lands them in files, and commits them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.errors import TableError
from spark_sink.fleet.schema_in_use import TableDecoder
from spark_sink.formats import Decoder, decode_batch
from spark_sink.formats.bad_values_quarantined import COLUMN, good_schema
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_formats import LakeTable, open_landing, open_table
from spark_sink.lake.table_settings import TableSettings
from spark_sink.options.topic_decoders import TopicDecoders
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, Outcome
from spark_sink.sink.quarantine.quarantine_commit import TableWithQuarantine, refuse_ahead
from spark_sink.sink.row_options import RowOptions
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions

log = logging.getLogger(__name__)

_DECODED_ROWS = 20_000  # decoded at a time: their Python objects and columns are beside the records in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedFiles:
    """Files of one table that no commit names yet.

    Attributes:
        good: files of the table.
        bad: files of its quarantine, with the records that could not be decoded.
        columns: columns of the good rows; None if they are those of the table's writer.
        record_bytes: keys and values of the records, by partition; empty without an ops log.
    """

    good: Sequence[DataFile] = ()
    bad: Sequence[DataFile] = ()
    columns: pa.Schema | None = None
    record_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of records in the files."""
        return sum(file.rows for file in (*self.good, *self.bad))


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What the tables took of a writer's records.

    Attributes:
        rows: number of records that this commit added to the table and its quarantine. Others were there before,
            because another agent wrote, too.
        quarantined: number of these that could not be decoded.
        ahead: the table's position, for ranges that do not end there, because another agent wrote, too.
    """

    rows: int = 0
    quarantined: int = 0
    ahead: Mapping[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def of(cls, outcome: Outcome, ahead: Mapping[TopicPartition, int]) -> Self:
        """Count the rows of a commit's outcome."""
        bad = sum(file.rows for file in outcome.quarantined.files) if outcome.quarantined is not None else 0
        return cls(rows=outcome.rows + bad, quarantined=bad, ahead=ahead)


class WriterTable:
    """One table with its quarantine, as `azimuth sink` writes them: the same decoding, files and commits.

    `land` may run beside the other calls, for which the caller allows one thread at a time.

    Args:
        uri: address of the table.
        options: group, agent, object store and settings of the table.
        rows: how records become rows.
        decoders: of the writer.
        topic: a topic of the table.

    Attributes:
        uri: address of the table.
        table: a handle of the table.
    """

    def __init__(self, uri: str, options: SinkOptions, rows: RowOptions, decoders: TopicDecoders, topic: str) -> None:
        self.uri = uri
        self._options = options
        self._rows = rows
        self._decoder = TableDecoder(rows, decoders, topic, self.handle)
        self.table = self.handle()
        self._quarantine = open_table(quarantine_of(uri), options.group, options.storage, options.quarantine)
        self._both = TableWithQuarantine(self.table, self._quarantine)
        self._opened = False
        self._reported: set[tuple[str, str]] = set()

    def handle(self) -> LakeTable:
        """Return another handle of the table."""
        return open_table(self.uri, self._options.group, self._options.storage, self._options.table)

    def quarantine_handle(self) -> LakeTable:
        """Return another handle of the quarantine."""
        uri, options = quarantine_of(self.uri), self._options
        return open_table(uri, options.group, options.storage, TableSettings())

    @property
    def columns(self) -> pa.Schema:
        """The columns of its good rows.

        Raises:
            OptionError, FetchError: the schema of the values is not known.
        """
        return good_schema(self._rows.schema(self._decoder.now()))

    def land(self, records: pa.Table) -> LandedFiles:
        """Decode records and write them to files.

        Args:
            records: in the columns of the raw format.

        Raises:
            OptionError, FetchError: the schema of the values is not known; the records are read again.
            TableError: the storage refuses.
        """
        decoder = self._decoder.newest()
        if decoder is None and not self._rows.partition_by:
            return LandedFiles(good=self._land_raw(records))
        schema = self._rows.schema(decoder)
        sorting = Sorting(self._options, schema, self._options.agent)
        for batch in records.to_batches(max_chunksize=_DECODED_ROWS):
            sorting.write(batch if decoder is None else self._decoded(batch, decoder))
        files = sorting.close()
        good, bad = files.get(self.uri, ()), files.get(quarantine_of(self.uri), ())
        return LandedFiles(good=good, bad=bad, columns=good_schema(schema))

    def commit(self, batch: Batch) -> Outcome:
        """Commit a batch to the table, and its bad rows to the quarantine.

        Raises:
            HoleError: rows before this batch are missing.
            TableError: the table or the quarantine refuses it.
        """
        if self._rows.decodes and not self._opened:
            refuse_ahead(self.table, self._quarantine)
        try:
            outcome = self._both.commit(batch)
        except TableError:
            # A rewind may be the reason, so this process compares the quarantine with the table again.
            self._opened, self._both = False, TableWithQuarantine(self.table, self._quarantine)
            raise
        self._opened = True
        return outcome

    def _land_raw(self, records: pa.Table) -> Sequence[DataFile]:
        options = self._options
        landing = open_landing(self.uri, options.storage, self._rows.schema(None), options.table)
        for batch in records.to_batches():
            landing.write(batch)
        return landing.close()

    def _decoded(self, batch: pa.RecordBatch, decoder: Decoder) -> pa.RecordBatch:
        rows = decode_batch(batch, decoder)
        if rows.column(COLUMN).null_count < rows.num_rows:
            self._report(rows)
        return rows

    def _report(self, rows: pa.RecordBatch) -> None:
        """Log the first record of each topic and class of error; `azimuth quarantine` shows all of them."""
        bad = rows.filter(rows.column(COLUMN).is_valid())
        errors = pc.struct_field(bad.column(COLUMN), "error_class")
        places = (bad.column(name) for name in ("topic", "partition", "offset"))
        for error, *place in zip(errors.to_pylist(), *(column.to_pylist() for column in places), strict=True):
            if (place[0], error) not in self._reported:
                self._reported.add((place[0], error))
                # Without the text of the error, which may repeat a part of the value.
                text = (
                    "%s: %s/%d offset %d goes to the quarantine (%s), and so do others of its kind; "
                    "`azimuth quarantine show` prints the reasons"
                )
                log.warning(text, self.uri, *place, error, extra={"topic": place[0]})
