"""Columns of Avro and Protobuf values from the newest schema of their subject, without a restart of the query.

The tasks write the data files, so the columns may change from one batch to the next, and `mergeSchema` adds new ones to
the table. Spark's rows have fixed columns, so a query with `landing=rows` uses the schema of its start.
"""

import time
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import structlog

from spark_sink.errors import FetchError, OptionError
from spark_sink.formats import Decoder
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.value_decoders import make_value_decoder
from spark_sink.options.value_format import ValueFormat
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.source.table_columns import TopicsDecoder

_log = structlog.get_logger("azimuth.source")
_EVERY_S = 60.0


def follows_registry(options: SourceOptions) -> bool:
    """Return whether new fields of the subject's latest schema become columns while the query runs."""
    value = options.value
    if value.name not in {"avro", "protobuf"} or value.schema or options.landing is None:
        return False
    return SinkOptions.parse(options.landing).table.merge_schema


class RegistryColumns:
    """The decoder of a query, made again when the subject has a schema with more fields.

    Args:
        value: the format of the values.
        first: the decoder of the query's start.
        clock: returns seconds, as time.monotonic.
    """

    def __init__(self, value: ValueFormat, first: Decoder, clock: Callable[[], float] = time.monotonic) -> None:
        self._value = value
        self._decoder = first
        self._clock = clock
        self._asked_s = clock()
        self._refused: pa.Schema | None = None

    def decoders(self, topics: Iterable[str]) -> Sequence[TopicsDecoder]:
        """Return the decoder of one batch; the registry is asked once a minute.

        A registry that does not answer changes nothing: the fields of a newer schema are unknown fields until it does.
        """
        if self._clock() - self._asked_s >= _EVERY_S:
            self._asked_s = self._clock()
            self._refresh()
        return [TopicsDecoder(frozenset(topics), self._decoder)]

    def _refresh(self) -> None:
        try:
            latest = make_value_decoder(self._value)
        except (FetchError, OptionError) as error:
            _log.warning("the newest schema of the values was not read: %s", error)
            return
        have = self._decoder.columns
        if latest is None or latest.columns in (have, self._refused):
            return
        if changed := [one.name for one in have if one not in list(latest.columns)]:
            # The table has the columns of before, so these values could not be written.
            self._refused = latest.columns
            _log.warning(
                "subject %s: its latest schema removes or changes %s, so the schema before it stays in use until a "
                "restart; fields that it lacks are unknown fields",
                self._value.subject,
                ", ".join(changed),
            )
            return
        new = [one.name for one in latest.columns if one not in list(have)]
        _log.info("subject %s: its latest schema adds %s", self._value.subject, ", ".join(new))
        self._decoder = latest
