"""Snapshots that remove files; this module imports pyiceberg, which loads slowly."""

from typing import Any

from pyiceberg.manifest import DataFile, ManifestEntry
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles


class RemoveFiles(_OverwriteFiles):
    """Removes files, and may add others. A file to remove that is not in the snapshot is an error of pyiceberg's own.

    A table may list a file several times. pyiceberg removes each of these entries, but its totals count the file once.
    """

    def _deleted_entries(self) -> list[ManifestEntry]:
        found = super()._deleted_entries()
        self._entries_removed: list[DataFile] = [one.data_file for one in found]
        return found

    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        files = self._deleted_data_files
        self._deleted_data_files = self._entries_removed  # type: ignore[assignment]  # read only, one by one
        try:
            return super()._summary(snapshot_properties or {})
        finally:
            self._deleted_data_files = files


class ReplaceFiles(RemoveFiles):
    """Replaces files by others with the same rows.

    The operation is `replace`: streaming readers skip such a snapshot, and stop at one of `overwrite`. pyiceberg
    computes the totals of no `replace`.
    """

    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        found = super()._summary(snapshot_properties)
        rest: dict[str, Any] = dict(found.additional_properties)
        return Summary(operation=Operation.REPLACE, **rest)
