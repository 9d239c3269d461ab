"""The folders of a Delta table's partitions, `column=value`.

Delta's log has the partition of each file, so the protocol leaves its path free. But Polars takes the values from the
path: rows of a file outside of such a folder would have null in the partition columns, without an error.
"""

import re
import uuid
from collections.abc import Mapping
from typing import Final

import pyarrow.fs as pa_fs

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
# Other characters are escaped in the path and again in the log, and readers differ in how often they undo that.
_PLAIN: Final = re.compile(r"[\w.-]+", re.ASCII)


def new_file(values: Mapping[str, str | None]) -> str:
    """Return the path of a new file below the table's folder.

    Args:
        values: of the partition columns. If one is not plain text, the file is outside of folders.
    """
    found = {name: value or _NULL for name, value in values.items()}  # Delta has one value for null and the empty text
    plain = all(map(_PLAIN.fullmatch, (*found, *found.values())))
    folders = [f"{name}={value}" for name, value in found.items()] if plain else []
    return "/".join([*folders, f"part-{uuid.uuid4().hex}.parquet"])


def make_folder(files: pa_fs.FileSystem, path: str) -> None:
    """Make the folder of a file; object stores have no folders."""
    folder, _, _ = path.rpartition("/")
    if folder and isinstance(files, pa_fs.SubTreeFileSystem) and isinstance(files.base_fs, pa_fs.LocalFileSystem):
        files.create_dir(folder, recursive=True)
