"""Files that Spark's Parquet writer has written in a folder beside those of the table."""

import logging
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import pyarrow.fs as pa_fs

from spark_sink.lake.adopted_files import describe_written
from spark_sink.lake.foreign_parquet import open_parquet
from spark_sink.lake.parquet_landing import Landing, storage_errors
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_storage import address_of

_log = logging.getLogger(__name__)

_THREADS: Final = 4


def local_root(files: pa_fs.FileSystem) -> str | None:
    """Return the local folder of a table's files; None if they are elsewhere."""
    if isinstance(files, pa_fs.SubTreeFileSystem) and isinstance(files.base_fs, pa_fs.LocalFileSystem):
        return str(files.base_path).rstrip("/")
    return None


def described(landing: Landing, folders: Iterable[str]) -> list[DataFile]:
    """Describe the files of some folders, where they are; those without rows are left out.

    Raises:
        TableError: the storage refused.
    """
    paths = [path for folder in folders for path in parquet_files(landing.files, folder)]
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda path: describe_written(landing.files, path, landing.schema.names), paths)
        return [file for file in found if file.rows]


def adopt(landing: Landing, found: Iterable[DataFile]) -> list[DataFile]:
    """Move described files to the place where all files of the table are.

    Raises:
        TableError: the storage refused.
    """
    for file in found:
        name = f"part-{uuid.uuid4().hex}.parquet"
        with storage_errors(address_of(landing.files, file.path)):
            landing.files.move(file.path, name)
        landing.add(replace(file, path=name))
    return landing.close()


def rows_in(files: pa_fs.FileSystem, path: str) -> int:
    """Return the number of rows of a file, from its footer."""
    with storage_errors(address_of(files, path)), files.open_input_file(path) as stream:
        rows: int = open_parquet(stream).metadata.num_rows
    return rows


def parquet_files(files: pa_fs.FileSystem, folder: str) -> list[str]:
    """Return the paths of the data files in a folder, which need not exist."""
    with storage_errors(address_of(files, folder)):
        found = files.get_file_info(pa_fs.FileSelector(folder, allow_not_found=True))
    return sorted(
        one.path for one in found if one.is_file and one.extension == "parquet" and one.base_name[0] not in "._"
    )


def last_write(files: pa_fs.FileSystem, folder: str) -> float:
    """Return the time of the last write in a folder, seconds since 1970."""
    with storage_errors(address_of(files, folder)):
        found = files.get_file_info(pa_fs.FileSelector(folder, allow_not_found=True, recursive=True))
        found.append(files.get_file_info(folder))
    return max(one.mtime_ns or 0 for one in found) / 1e9


def remove(files: pa_fs.FileSystem, folder: str) -> None:
    """Remove what is left of the folder; a later start of the query does it where this fails."""
    try:
        if files.get_file_info(folder).type == pa_fs.FileType.Directory:
            files.delete_dir(folder)
    except OSError as error:
        _log.warning("%s is left behind: %s", folder, error)
