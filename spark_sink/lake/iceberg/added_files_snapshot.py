"""Snapshots that add files, and merge small manifests into sorted ones; imports pyiceberg, which loads slowly."""

from typing import Any

from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table.update.snapshot import _FastAppendFiles, _ManifestMergeManager, _MergeAppendFiles


class AddFiles(_MergeAppendFiles):
    """Adds files, and merges the manifests of a partition spec once there are as many as the table's properties say.

    In a merged manifest the files are in the order of their partitions, so files of one partition stand together,
    whichever commits they came with. Manifests that are not merged stay as they are: a commit costs the same in an old
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
    """Return the values of a file's partition, comparable also where one of them is null."""
    found = entry.data_file.partition
    return tuple((found[at] is not None, found[at]) for at in range(len(found)))
