"""Small files joined, by one writer at a time, so that reading the log costs the same as the table ages."""

import logging
import time

from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties
from deltalake.exceptions import CommitFailedError, DeltaError

from spark_sink.lake.delta_transactions import OURS, TransactionLog

_NO_ROWS = {"kind": "compaction", "rows": 0}

_log = logging.getLogger("azimuth.sink")

_COMPACTION, _COMPACTION_DONE = "azimuth/compaction", "azimuth/compaction-done"
_COMPACTED_ELSEWHERE = "azimuth/compacted-elsewhere"
_DAY_MS = 24 * 3600 * 1000
_LEFT_TO_OTHERS_MS = 8 * _DAY_MS  # longer than a week: a job that compacts may run on Sundays


class Compaction:
    """The compaction of one table, as one of its writers sees it.

    Files up to 16 MB are joined each time, up to 128 MB each sixteenth time: a file that has grown is left alone, so a
    row is rewritten a few times in its life and not each time.

    Args:
        uri: of the table, for messages.
        log: of the table.
    """

    def __init__(self, uri: str, log: TransactionLog) -> None:
        self._uri = uri
        self._log = log
        self._compacted: int | None = None

    def run(self, handle: DeltaTable, every: int) -> bool:
        """Join small files once in `every` versions.

        Args:
            handle: of the table; it stands at the newest version afterwards.
            every: versions between two times; 0 for never.

        Returns:
            Whether this call did it. Another writer's compaction, or a change at the same time, is no error.
        """
        if not every or handle.version() // every == self._compacted:
            return False
        first, self._compacted = self._compacted is None, handle.version() // every
        if first:
            return False
        large = self._compacted % 16 == 0
        try:
            handle.update_incremental()
            if not self._claim(handle, self._compacted):
                return False
            handle.optimize.compact(
                target_size=(128 if large else 16) << 20,
                max_concurrent_tasks=1,
                writer_properties=WriterProperties(compression="ZSTD"),
                commit_properties=CommitProperties(custom_metadata={OURS: _NO_ROWS}),
            )
            handle.update_incremental()
            _set_application(handle, _COMPACTION_DONE, self._compacted)
        except (DeltaError, OSError) as error:
            _log.info("%s: compaction left to the next time: %s", self._uri, error)
            return False
        return True

    def _claim(self, handle: DeltaTable, number: int) -> bool:
        """Be the only writer that compacts, by compare and swap.

        Two compactions at once both go through, whatever files the other has removed, and every row of them is there
        twice: delta-rs looks at the newest version again before it commits, and no application id of its own holds it.
        A claim whose writer died is passed over after twenty more times. Someone else's OPTIMIZE knows no claims: where
        there was one lately, compaction is left to them.
        """
        kept = self._log.refresh(handle.version())
        if self._compacts_elsewhere(handle, kept.get(_COMPACTED_ELSEWHERE, 0)):
            return False
        claimed, done = kept.get(_COMPACTION, -1), kept.get(_COMPACTION_DONE, -1)
        if number <= claimed or (done < claimed and number < claimed + 20):
            return False
        try:
            _set_application(handle, _COMPACTION, number)
        except CommitFailedError:
            return False
        return True

    def _compacts_elsewhere(self, handle: DeltaTable, kept_ms: int) -> bool:
        seen_ms = self._log.compacted_elsewhere_ms
        if seen_ms > kept_ms + _DAY_MS:
            # Kept, because the commit that says so is cleaned up, and a new process reads from the last checkpoint on.
            _set_application(handle, _COMPACTED_ELSEWHERE, seen_ms)
            _log.warning("%s: someone else runs OPTIMIZE here; compaction is left to them", self._uri)
        return time.time() * 1000 - max(seen_ms, kept_ms) < _LEFT_TO_OTHERS_MS


def _set_application(handle: DeltaTable, name: str, number: int) -> None:
    handle.create_write_transaction(
        [],
        mode="append",
        schema=handle.schema(),
        partition_by=handle.metadata().partition_columns,
        commit_properties=CommitProperties(
            app_transactions=[Transaction(name, number)],
            custom_metadata={OURS: _NO_ROWS},
        ),
    )
    handle.update_incremental()
