"""The snapshot of a compaction; this module imports pyiceberg, which loads slowly."""

from typing import Any

from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles


class ReplaceFiles(_OverwriteFiles):
    """Replaces files by others with the same rows.

    A file to remove that is not in the snapshot is an error of pyiceberg's own. The operation is `replace`: streaming
    readers skip such a snapshot, and stop at one of `overwrite`. pyiceberg computes the totals of no `replace`.
    """

    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        found = super()._summary(snapshot_properties or {})
        rest: dict[str, Any] = dict(found.additional_properties)
        return Summary(operation=Operation.REPLACE, **rest)
