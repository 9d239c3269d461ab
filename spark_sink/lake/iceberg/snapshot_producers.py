"""The classes by which pyiceberg makes a snapshot, corrected; this module imports pyiceberg, which loads slowly.

They make snapshots that add files, and merge small manifests into sorted ones, and snapshots that remove files. Their
transaction copies nothing to look at the metadata.

pyiceberg names the partition of every file of a commit for the summary, and fails on a day before the year 1 or after
9999. A producer with a wrong clock sends such a time, and a table partitioned by its day has such a partition.
"""

from typing import Any

from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _FastAppendFiles, _ManifestMergeManager, _MergeAppendFiles, _OverwriteFiles
from pyiceberg.utils import datetime as times

_name_of_day = times.to_human_day


class AddFiles(_MergeAppendFiles):
    """Adds files, and merges the manifests of a partition spec once there are as many as the table's properties say.

    In a merged manifest the files are in the order of their partitions, so files of one partition are adjacent,
    whatever commits added them. Manifests that are not merged stay as they are: a commit costs the same in an old
    table.
    """

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        merging = _SortedManifests(
            target_size_bytes=self._target_size_bytes,
            min_count_to_merge=self._min_count_to_merge,
            merge_enabled=self._merge_enabled,
            snapshot_producer=self,
        )
        data = [one for one in manifests if one.content == ManifestContent.DATA]
        return merging.merge_manifests(data) + [one for one in manifests if one.content != ManifestContent.DATA]


class _SortedManifests(_ManifestMergeManager[_FastAppendFiles]):
    def _create_manifest(self, spec_id: int, manifest_bin: list[ManifestFile]) -> ManifestFile:
        producer = self._snapshot_producer
        entries = [
            entry
            for manifest in manifest_bin
            for entry in producer.fetch_manifest_entry(manifest=manifest, discard_deleted=False)
        ]
        with producer.new_manifest_writer(spec=producer.spec(spec_id)) as writer:
            for entry in sorted(entries, key=_partition):
                new = entry.snapshot_id == producer.snapshot_id
                if entry.status == ManifestEntryStatus.ADDED and new:
                    writer.add(entry)
                elif entry.status != ManifestEntryStatus.DELETED:
                    writer.existing(entry)
        return writer.to_manifest_file()


def _partition(entry: ManifestEntry) -> tuple[tuple[bool, Any], ...]:
    """Return the values of a file's partition, comparable even if one of them is null."""
    found = entry.data_file.partition
    return tuple((found[at] is not None, found[at]) for at in range(len(found)))


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


class ReadTransaction(Transaction):
    """A transaction that gives the metadata as it was read.

    pyiceberg's own copies the whole metadata, with all snapshots, at each of the fourteen looks of one append: most of
    the time of a commit, and more with each snapshot. The append reads them only, before its first update is staged.
    """

    @property
    def table_metadata(self) -> TableMetadata:
        """The metadata, with the staged updates if there are any."""
        return self._table.metadata if not self._updates else super().table_metadata


def name_any_day() -> None:
    """Let pyiceberg name such a day by its number; a second call has no effect."""
    times.to_human_day = _name


def _name(day_ordinal: int) -> str:
    try:
        return _name_of_day(day_ordinal)
    except OverflowError:
        return str(day_ordinal)
