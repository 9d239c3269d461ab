"""Metadata files, read only as a whole; this module imports pyiceberg, which loads slowly.

A store reads as many bytes as its answer to HEAD says, and some proxies say too few. pyiceberg passes on the error of
the JSON, in which neither the file nor the cause is named, and which nothing repeats.
"""

import io
import json
import zlib
from typing import TYPE_CHECKING

from pyiceberg.serializers import Compressor, FromByteStream, FromInputFile
from pyiceberg.typedef import UTF8

from spark_sink.lake.iceberg.whole_avro_files import content_of

if TYPE_CHECKING:
    from pyiceberg.io import InputFile
    from pyiceberg.table.metadata import TableMetadata

_FIRST = "format-version"  # each version of the format has this field


def read_only_whole_metadata() -> None:
    """Let pyiceberg report a metadata file that was cut as an error of the storage; a second call has no effect."""
    FromInputFile.table_metadata = staticmethod(_table_metadata)  # type: ignore[method-assign]  # of all its catalogs


def _table_metadata(input_file: "InputFile", encoding: str = UTF8) -> "TableMetadata":
    content = content_of(input_file)
    compressor = Compressor.get_compressor(input_file.location)
    try:
        return FromByteStream.table_metadata(io.BytesIO(content), encoding, compressor)
    except Exception as error:  # of the JSON, and of each cut of a compressed file
        if _is_whole(content, compressor):
            raise
        raise OSError(
            f"{input_file.location}: the {len(content)} bytes that were read are not the whole file"
        ) from error


def _is_whole(content: bytes, compressor: Compressor) -> bool:
    try:
        with compressor.stream_decompressor(io.BytesIO(content)) as stream:
            value = json.loads(stream.read())
    except (ValueError, EOFError, OSError, zlib.error):
        return False
    return isinstance(value, dict) and _FIRST in value
