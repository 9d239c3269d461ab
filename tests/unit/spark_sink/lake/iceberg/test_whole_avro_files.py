"""Manifests of which a store gives a part only: no commit drops the files that the rest names."""

from pathlib import Path
from typing import Any
from unittest.mock import create_autospec
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyiceberg.io import InputFile
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.manifest import clear_manifest_cache

from spark_sink.errors import TableError
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.repeated_requests import asked_once
from spark_sink.lake.iceberg.whole_avro_files import content_of
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink import commit_by_compare_and_swap
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.table_kinds import ADDRESS, SCHEMA, Kind, kind_of, warehouse

A = TopicPartition("a", 0)
SYNC = 16  # bytes of the marker after the header and each block


def _write(kind: Kind, begin: int) -> None:
    batch = Batch(
        offset=Offset.of([Range("a", 0, begin, begin + 3)]),
        files=[kind.write(A, range(begin, begin + 3))],
        schema=SCHEMA,
    )
    commit(kind.make(), batch)


def _avro(kind: Kind, name: str) -> Path:
    """Return the list of the manifests, or the first manifest."""
    handle = kind.make()
    handle.refresh()
    assert isinstance(handle, IcebergTable)
    assert handle.stored is not None
    table = handle.stored.table
    snapshot = table.current_snapshot()
    assert snapshot is not None
    place = snapshot.manifest_list if name == "list" else snapshot.manifests(table.io)[0].manifest_path
    return Path(urlsplit(place).path)


@pytest.mark.parametrize("more", [0, SYNC // 2, SYNC + 1], ids=["header", "marker", "block"])
def test_a_commit_refuses_a_list_of_manifests_that_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    """To pyiceberg it is an empty one, and the rows of all earlier commits would be lost."""
    monkeypatch.setattr(commit_by_compare_and_swap, "_FAILURE_PAUSE_S", 0)
    kind = kind_of("iceberg", tmp_path)
    kind.make().create(SCHEMA)
    _write(kind, 0)
    later = kind.write(A, range(3, 6))
    file = _avro(kind, "list")
    content = file.read_bytes()
    file.write_bytes(content[: content.index(content[-SYNC:]) + more])
    with pytest.raises(TableError, match="not the whole file"):
        commit(kind.make(), Batch(offset=Offset.of([Range("a", 0, 3, 6)]), files=[later], schema=SCHEMA))
    file.write_bytes(content)
    _write(kind, 3)
    assert sorted(offset for _, offset in kind.rows()) == list(range(6))


@pytest.mark.parametrize("kept", [0, 1, 200, 900, -1])
def test_any_part_of_a_list_is_an_error_of_the_storage(tmp_path: Path, kept: int) -> None:
    """Commands report such an error, but would end at an EOFError as at Ctrl-D: without a sentence, and with code 1."""
    kind = kind_of("iceberg", tmp_path)
    kind.make().create(SCHEMA)
    _write(kind, 0)
    file = _avro(kind, "list")
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(OSError, match=f"{file.name}: the .* not the whole file"):
        kind.rows()


@pytest.mark.parametrize("name", ["list", "manifest"])
def test_a_reader_refuses_manifests_that_were_cut(tmp_path: Path, name: str) -> None:
    """Else it would report that rows are missing."""
    kind = kind_of("iceberg", tmp_path)
    kind.make().create(SCHEMA)
    _write(kind, 0)
    file = _avro(kind, name)
    content = file.read_bytes()
    file.write_bytes(content[: content.index(content[-SYNC:]) + 1])
    clear_manifest_cache()
    with pytest.raises(OSError, match="not the whole file"):
        kind.rows()


@pytest.mark.parametrize("ending", [".metadata.json", ".avro"], ids=["metadata", "manifests"])
def test_a_file_that_a_store_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """Arrow's message of a GET that an object store has refused names neither the object nor the table."""
    kind = kind_of("iceberg", tmp_path)
    kind.make().create(SCHEMA)
    _write(kind, 0)
    clear_manifest_cache()
    real = PyArrowFile.open

    def opened(file: PyArrowFile, *arguments: bool, **named: bool) -> Any:
        if file.location.endswith(ending):
            raise OSError("AWS Error RESOURCE_NOT_FOUND during GetObject operation")
        return real(file, *arguments, **named)

    monkeypatch.setattr(PyArrowFile, "open", opened)
    sentence = rf"^lake.raw.events: cannot be read: OSError: file:.*{ending}: AWS Error"
    with asked_once(), pytest.raises(TableError, match=sentence):
        verify(ADDRESS, "g", warehouse(tmp_path))


class _Short(pa.BufferReader):  # type: ignore[misc]  # pyarrow has no types
    """A file in S3 as Arrow reads it where the answer is short: its buffer had another file before."""

    received: bytes

    def read(self, nbytes: int | None = None) -> bytes:
        """Read into the buffer."""
        before: bytes = super().read(nbytes)
        return self.received + before[len(self.received) :]

    def readinto(self, b: memoryview) -> int:
        """Read into the memory of the caller."""
        b[: len(self.received)] = self.received
        return len(b)


@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_what_the_memory_had_before_is_no_file(part: float) -> None:
    """An older list of the same size is whole, and its snapshot lacks the rows of the later ones."""
    older, newer = b"o" * 900, b"n" * 900
    received = newer[: int(part * len(newer))]
    stream = _Short(older)
    stream.received = received
    file = create_autospec(InputFile, instance=True)
    file.open.return_value = stream
    assert content_of(file) == received + bytes(len(newer) - len(received))
