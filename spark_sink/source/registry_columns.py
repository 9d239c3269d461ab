"""Columns of Avro and Protobuf values from the newest schema of their subject, without a restart of the query.

The tasks write the data files, so the columns may change from one batch to the next, and `mergeSchema` adds new ones to
the table. Spark's rows have fixed columns, so a query with `landing=rows` uses the schema of its start.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import structlog

from spark_sink.errors import TableError
from spark_sink.formats import Decoder
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.value_decoders import make_value_decoder
from spark_sink.sink.newer_schema import new_columns, why_not
from spark_sink.sink.rows_by_table import landed_schema
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.source.table_columns import TopicsDecoder, columns_of_table

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_log = structlog.get_logger("azimuth.source")
_EVERY_S = 60.0
_WAIT_S = 1.0


def follows_registry(options: SourceOptions) -> bool:
    """Return whether new fields of the subject's latest schema become columns while the query runs."""
    value = options.value
    if value.name not in {"avro", "protobuf"} or value.schema or options.landing is None:
        return False
    return SinkOptions.parse(options.landing).table.merge_schema


class RegistryColumns:
    """The decoder of a query, made again when the subject has a schema with more fields.

    Args:
        options: of a source for which `follows_registry` is true.
        first: the decoder of the query's start.
        clock: returns seconds, as time.monotonic.
    """

    def __init__(self, options: SourceOptions, first: Decoder, clock: Callable[[], float] = time.monotonic) -> None:
        assert options.landing is not None  # noqa: S101 -- `follows_registry`
        self._value = options.value
        self._headers, self._left_out = options.headers, options.left_out
        self._sink = SinkOptions.parse(options.landing)
        self._decoder = first
        self._clock = clock
        self._asked_s = clock()
        self._asking = False
        self._answers: queue.SimpleQueue[Decoder | Exception | None] = queue.SimpleQueue()
        self._refused: pa.Schema | None = None

    def decoders(self, topics: Iterable[str]) -> Sequence[TopicsDecoder]:
        """Return the decoder of one batch; the registry is asked once a minute, and the wait is at most a second.

        A registry that does not answer changes nothing: the fields of a newer schema are unknown fields until it does.
        The same holds for a schema whose rows the tables would refuse.
        """
        names = frozenset(topics)
        if not self._asking and self._clock() - self._asked_s >= _EVERY_S:
            self._asked_s, self._asking = self._clock(), True
            threading.Thread(target=self._ask, name="azimuth-registry", daemon=True).start()
        if self._asking:
            self._take_answer(names)
        return [TopicsDecoder(names, self._decoder)]

    def _ask(self) -> None:
        """Read the latest schema, in a thread of its own: the client may wait for ever."""
        try:
            self._answers.put(make_value_decoder(self._value))
        except Exception as error:  # noqa: BLE001 -- a schema that no library can read has any error
            self._answers.put(error)

    def _take_answer(self, topics: frozenset[str]) -> None:
        try:
            answer = self._answers.get(timeout=_WAIT_S)
        except queue.Empty:
            return
        self._asking = False
        if isinstance(answer, Exception):
            _log.warning("subject %s: its latest schema was not read: %s", self._value.subject, answer)
        elif answer is not None and answer.columns not in (self._decoder.columns, self._refused):
            self._take_up(answer, topics)

    def _take_up(self, latest: Decoder, topics: frozenset[str]) -> None:
        try:
            why = why_not(self._decoder, latest, self._rows, self._tables(topics))
        except TableError as error:
            _log.warning("subject %s: its latest schema is not used yet: %s", self._value.subject, error)
            return
        if why is not None:
            self._refused = latest.columns
            _log.warning(
                "subject %s: its latest schema is not used before a restart, because %s; fields that the schema before "
                "it lacks are unknown fields",
                self._value.subject,
                why,
            )
            return
        _log.info("subject %s: its latest schema adds %s", self._value.subject, new_columns(self._decoder, latest))
        self._decoder = latest

    def _rows(self, decoder: Decoder) -> "pa.Schema":
        return landed_schema(decoder, headers=self._headers, left_out=self._left_out)

    def _tables(self, topics: frozenset[str]) -> "Iterator[tuple[str, pa.Schema | None]]":
        handles: dict[str, DeltaTable] = {}
        for address in self._sink.routes.by_table(topics):
            yield address, columns_of_table(address, self._sink.storage, handles)
