"""The schema in use for one table: its first decoder, until a newer schema of the registry adds fields."""

import logging
from collections.abc import Callable

import pyarrow as pa

from spark_sink.errors import TableError
from spark_sink.formats import Decoder
from spark_sink.lake.table_formats import LakeTable
from spark_sink.options.topic_decoders import TopicDecoders
from spark_sink.sink.newer_schema import new_columns, why_not
from spark_sink.sink.row_options import RowOptions

log = logging.getLogger(__name__)


class TableDecoder:
    """The decoder of one table.

    `now` may be called by any thread, `newest` by the thread that writes files.

    Args:
        rows: how records become rows.
        decoders: of the writer.
        topic: a topic of the table.
        handle: returns another handle of the table.
    """

    def __init__(self, rows: RowOptions, decoders: TopicDecoders, topic: str, handle: Callable[[], LakeTable]) -> None:
        self._rows = rows
        self._decoders = decoders
        self._topic = topic
        self._handle = handle
        self._taken: Decoder | None = None
        self._refused: pa.Schema | None = None

    def now(self) -> Decoder | None:
        """Return the decoder in use; None for the raw format.

        Raises:
            OptionError, FetchError: the schema of the values is not known.
        """
        return self._taken or self._decoders.of(self._topic)

    def newest(self) -> Decoder | None:
        """Return the decoder for the next files, after a look whether a newer schema adds fields; never waits for it.

        Raises:
            OptionError, FetchError: no schema of the values is known.
        """
        before = self.now()
        if before is None or not self._rows.follows_registry:
            return before
        latest = self._decoders.newest(self._topic)
        if latest is None or latest.columns in (before.columns, self._refused):
            return before
        return self._take_up(before, latest)

    def _take_up(self, before: Decoder, latest: Decoder) -> Decoder:
        table = self._handle()  # a separate one: another thread may use the writer's
        try:
            snapshot = table.refresh()
            why = why_not(before, latest, self._rows.schema, [(table.name, snapshot.schema if snapshot else None)])
        except TableError as error:
            log.info("%s: the latest schema is not used yet: %s", table.name, error)
            return before
        if why is not None:
            self._refused = latest.columns
            text = "%s: the latest schema is not used before a restart, because %s; its new fields are unknown fields"
            log.warning(text, table.name, why, extra={"topic": self._topic})
            return before
        log.info("%s: the latest schema of the values adds %s", table.name, new_columns(before, latest))
        self._taken = latest
        return latest
