"""Manifests and their lists, read only as a whole; this module imports pyiceberg, which loads slowly.

pyiceberg takes a file that ends with its header as one without entries. A store reads as many bytes as its answer to
HEAD says, and some proxies say too few. The next commit would then drop all files of the table from its list, and their
rows would be lost, although the positions stay.

Where an object store answers a GET with fewer bytes than were asked for, Arrow 26 returns as many as were asked for:
the others are what its memory had before, such as an older list of the same size. So files are read into zeros.
"""

import io
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyiceberg import manifest
from pyiceberg.avro.file import SYNC_SIZE, AvroFile

if TYPE_CHECKING:
    from pyiceberg.io import InputFile, InputStream

_Entry = TypeVar("_Entry")


class _InMemory:
    """The content of a file, as pyiceberg opens it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def open(self) -> io.BytesIO:
        """Return a stream of the content."""
        return io.BytesIO(self._content)


class WholeAvroFile(AvroFile[_Entry]):  # type: ignore[type-var]  # its bound is private
    """An Avro file that ends with the marker after its last block."""

    def __enter__(self) -> "WholeAvroFile[_Entry]":
        file: InputFile = self.input_file
        content = content_of(file)
        self.input_file = _InMemory(content)  # type: ignore[assignment]  # only `open` is called
        try:
            super().__enter__()
            is_whole = content[-SYNC_SIZE:] == self.header.sync
        except Exception as error:  # each cut of a header has its own; a command would take EOFError for Ctrl-D
            raise _not_whole(file, content) from error
        if not is_whole:
            raise _not_whole(file, content)
        return self


def _not_whole(file: "InputFile", content: bytes) -> OSError:
    return OSError(f"{file.location}: the {len(content)} bytes that were read are not the whole file")


def content_of(file: "InputFile") -> bytes:
    """Read a file.

    Raises:
        OSError: it cannot be read; the message has its address, which Arrow's message of an object store lacks.
    """
    try:
        with file.open() as stream:
            return _received(stream)
    except OSError as error:
        if error.errno is not None or file.location.rpartition("/")[2] in str(error):
            raise
        raise OSError(f"{file.location}: {error}") from error


def _received(stream: "InputStream") -> bytes:
    if not isinstance(stream, pa.NativeFile):
        return bytes(stream.read())
    content = memoryview(bytearray(stream.size()))
    read = 0
    while read < len(content) and (more := stream.readinto(content[read:])):
        read += more
    return bytes(content[:read])


def read_only_whole() -> None:
    """Let pyiceberg refuse manifests and lists of manifests that were cut; a second call has no effect."""
    manifest.AvroFile = WholeAvroFile  # type: ignore[attr-defined]
