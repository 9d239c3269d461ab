"""A metadata file of which a store gives a part: it is read again, or refused with one sentence that names it."""

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.table import StaticTable

from spark_sink.errors import TableError
from spark_sink.lake.iceberg import repeated_requests
from spark_sink.lake.iceberg.repeated_requests import asked_once
from spark_sink.lake.iceberg.stored_rows import open_stored
from tests.iceberg_batches import Writer, offsets
from tests.table_kinds import ADDRESS, peer, warehouse

Cut = Callable[[bytes], bytes]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a table with three records; requests are repeated without a pause."""
    monkeypatch.setattr(repeated_requests, "_PAUSE_S", 0.001)
    Writer(tmp_path).write(0, 3)
    return tmp_path


def _metadata_file(root: Path) -> Path:
    return Path(urlsplit(peer(root).metadata_location).path)


def _cut_once(cut: Cut, patch: pytest.MonkeyPatch) -> None:
    """Let the first reading of a metadata file give a part only."""
    real, cuts = PyArrowFile.open, iter([cut])

    def opened(file: PyArrowFile, *arguments: bool, **named: bool) -> Any:
        stream = real(file, *arguments, **named)
        now = next(cuts, None) if file.location.endswith(".metadata.json") else None
        return stream if now is None else io.BytesIO(now(stream.read()))

    patch.setattr(PyArrowFile, "open", opened)


def _parts(content: bytes) -> Iterator[bytes]:
    """Yield the beginnings of every length, some ends, and each single byte: a digit by itself is JSON, too."""
    yield from (content[:kept] for kept in range(len(content)))
    yield from (content[at:] for at in range(1, len(content), 23))
    yield from (bytes([one]) for one in sorted(set(content)))


def test_a_file_that_is_cut_once_is_read_again(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query of Spark would end with the first error."""
    size = _metadata_file(table).stat().st_size
    for kept in {0, 1, size // 2, size - 1}:
        with monkeypatch.context() as patch:
            _cut_once(lambda content, kept=kept: content[:kept], patch)  # type: ignore[misc]  # a default
            assert offsets(table) == [0, 1, 2]


def test_a_writer_reads_a_file_that_is_cut_once_again(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look before a batch is one of pyiceberg's that ends a query."""
    writer = Writer(table)
    _cut_once(lambda content: content[:-9], monkeypatch)
    writer.write(3, 6)
    assert offsets(table) == list(range(6))


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
def test_every_part_of_a_file_is_an_error_of_the_storage(table: Path, *, compressed: bool) -> None:
    """Not one of JSON, of gzip or of pydantic, which are not repeated; and no part is taken for another state."""
    content = _metadata_file(table).read_bytes()
    place = table / ("v1.gz.metadata.json" if compressed else "v1.metadata.json")
    content = gzip.compress(content) if compressed else content
    for part in _parts(content):
        place.write_bytes(part)
        with pytest.raises(OSError, match=f"{place.name}: the {len(part)} bytes that were read are not the whole file"):
            StaticTable.from_metadata(str(place))
    place.write_bytes(content)
    assert StaticTable.from_metadata(str(place)).metadata == peer(table).metadata


def test_a_file_that_stays_cut_is_refused_with_one_sentence(table: Path) -> None:
    """It names the table and the file, so that a person can put the file back."""
    file = _metadata_file(table)
    content = file.read_bytes()
    half = len(content) // 2
    file.write_bytes(content[:half])
    sentence = f"^lake.raw.events: cannot be read: OSError: .*{file.name}: the {half} bytes .* not the whole file$"
    with asked_once(), pytest.raises(TableError, match=sentence) as refused:
        open_stored(ADDRESS, warehouse(table))
    assert "pydantic" not in str(refused.value)


def test_a_whole_file_that_pyiceberg_refuses_is_not_a_cut_one(table: Path) -> None:
    """Another reading does not help, so it is not repeated."""
    file = _metadata_file(table)
    file.write_bytes(file.read_bytes().replace(b'"format-version":2', b'"format-version":9'))
    with pytest.raises(TableError, match="format_version") as refused:
        open_stored(ADDRESS, warehouse(table))
    assert "not the whole file" not in str(refused.value)
