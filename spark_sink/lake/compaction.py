"""Compacts small files, one writer at a time, so that reading the log does not get slower as the table ages."""

import logging
import time
from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from spark_sink.errors import TableError
from spark_sink.formats.variant_type import arrow_columns
from spark_sink.lake.delta_log_reader import TransactionLog, lasting
from spark_sink.lake.delta_transaction import commit
from spark_sink.lake.fenced_replacement import replace_files
from spark_sink.lake.file_rewrite import Rewrite, plan_rewrites, write_rewrite
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import filesystem
from spark_sink.lake.vacuumed_files import refuse_gone

_NO_ROWS = {"kind": "compaction", "rows": 0}

_log = logging.getLogger("azimuth.sink")

_COMPACTION, _COMPACTION_DONE = "azimuth/compaction", "azimuth/compaction-done"
_COMPACTED_ELSEWHERE = "azimuth/compacted-elsewhere"
_DAY_MS = 24 * 3600 * 1000
_PASSED_OVER = 3  # missed compactions after which the claim counts as that of a dead writer
_LEFT_TO_OTHERS_MS = 8 * _DAY_MS  # longer than a week, because another compaction job may run on Sundays


class Compaction:
    """The compaction of one table by one of its writers.

    Files up to 16 MB are compacted each time, and up to 128 MB each sixteenth time. If there are many, one that has
    more rows than all smaller ones together waits until they have as many. So a row is rewritten only a few times.

    Args:
        uri: address of the table, for messages.
        log: log of the table.
        storage: options of the object store.
    """

    def __init__(self, uri: str, log: TransactionLog, storage: Storage | None = None) -> None:
        self._uri = uri
        self._storage = storage
        self._log = log
        self._compacted: int | None = None

    def run(self, handle: DeltaTable, every: int) -> bool:
        """Compact small files once in `every` versions.

        Args:
            handle: handle of the table; afterwards it is at the newest version.
            every: versions between two compactions; 0 for never.

        Returns:
            Whether this call compacted. A failure is only logged, because the batch before it is committed.
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
            files = filesystem(self._uri, self._storage)
            schema, target_bytes = arrow_columns(handle.schema()), (128 if large else 16) << 20
            rewrites = [write_rewrite(files, one, schema) for one in plan_rewrites(handle, target_bytes)]
            return self._commit(handle, rewrites, self._compacted)
        except (DeltaError, OSError, pa.ArrowException, OverflowError, ValueError, TableError) as error:
            _log.info("%s: compaction left to the next time: %s", self._uri, error)
            return False

    def _commit(self, handle: DeltaTable, rewrites: Sequence[Rewrite], number: int) -> bool:
        """Replace the small files with the compacted ones, if all of them are in the table until the commit."""
        added = {file.path: file.modification_time for one in rewrites for file in one.adds}
        refuse_gone(self._uri, added, self._storage)
        if not replace_files(handle, rewrites, _NO_ROWS, [lasting(_COMPACTION_DONE, number)]):
            _log.info("%s: compaction dropped: another writer removed some of its files", self._uri)
            return False
        return bool(rewrites)

    def _claim(self, handle: DeltaTable, number: int) -> bool:
        """Claim the compaction by compare and swap, so that only one writer does the work.

        The commit itself is fenced. So the claim of a stopped writer is soon ignored, and a writer that resumes later
        does no harm. An OPTIMIZE by delta-rs is not fenced: after a recent one, compaction is left to its writer.
        """
        kept = self._log.refresh(handle.version())
        if self._compacts_elsewhere(handle, kept.get(_COMPACTED_ELSEWHERE, 0)):
            return False
        claimed, done = kept.get(_COMPACTION, -1), kept.get(_COMPACTION_DONE, -1)
        if number <= claimed or (done < claimed and number < claimed + _PASSED_OVER):
            return False
        try:
            _set_application(handle, _COMPACTION, number)
        except CommitFailedError:
            return False
        return True

    def _compacts_elsewhere(self, handle: DeltaTable, kept_ms: int) -> bool:
        seen_ms = self._log.compacted_elsewhere_ms
        if seen_ms > kept_ms + _DAY_MS:
            # Stored, because the OPTIMIZE commit is cleaned up, and a new process reads only from the last checkpoint.
            _set_application(handle, _COMPACTED_ELSEWHERE, seen_ms)
            _log.warning("%s: another writer runs OPTIMIZE here; compaction is left to it", self._uri)
        return time.time() * 1000 - max(seen_ms, kept_ms) < _LEFT_TO_OTHERS_MS


def _set_application(handle: DeltaTable, name: str, number: int) -> None:
    commit(handle, (), [lasting(name, number)], _NO_ROWS)
    handle.update_incremental()
