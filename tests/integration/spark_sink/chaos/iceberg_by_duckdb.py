"""Iceberg tables as DuckDB reads them: from catalog, metadata and manifests, by none of the project's code."""

import base64
import contextlib
import json
import sqlite3
import urllib.parse
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import fastavro

_SUFFIX = "_quarantine"
_POSITIONS = "kafka-azimuth.positions"
_DELETED = 2
_TABLES = "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables"
_LACKING = """
SELECT count(*) FROM (FROM read_parquet($one) SELECT topic, "partition", "offset")
ANTI JOIN (FROM read_parquet($files) SELECT topic, "partition", "offset") USING (topic, "partition", "offset")
"""


def catalog(root: Path) -> Path:
    """Return the database of the catalog of a folder."""
    return root / "catalog.db"


def metadata(root: Path) -> dict[str, dict[str, Any]]:
    """Return the newest metadata of each table, by its name, quarantines included; empty without a catalog."""
    if not catalog(root).exists():
        return {}
    with contextlib.closing(sqlite3.connect(catalog(root), timeout=60)) as connection:
        try:
            found = connection.execute(_TABLES).fetchall()
        except sqlite3.OperationalError:  # an agent creates the catalog
            return {}
    return {name: json.loads(_path(location).read_text()) for name, location in found}


def good_files(connection: duckdb.DuckDBPyConnection, root: Path) -> list[str]:
    """Return the data files of the newest versions of all tables without the quarantines."""
    del connection
    found = metadata(root)
    return [file for name, one in found.items() if not name.endswith(_SUFFIX) for file in _active(one)]


def bad_files(connection: duckdb.DuckDBPyConnection, root: Path) -> list[str]:
    """Return the files of the quarantines: their own, and those that a commit of a table names for its quarantine.

    A writer may die between the two commits; the next one adds the files that are named. A compaction may have replaced
    a named file since, so a named file counts only if the quarantine lacks a record of it.
    """
    found = metadata(root)
    files: list[str] = []
    for name, one in found.items():
        if name.endswith(_SUFFIX):
            continue
        quarantine = found.get(name + _SUFFIX)
        own = _active(quarantine) if quarantine else []
        named = sorted(set(_named(one)) - set(own))
        files += own + [file for file in named if _lacks(connection, own, file)]
    return files


def _active(table: Mapping[str, Any]) -> list[str]:
    """Return the data files of the current snapshot; a snapshot with deletes by row is refused."""
    current = next((one for one in table["snapshots"] if one["snapshot-id"] == table.get("current-snapshot-id")), None)
    found: list[str] = []
    for manifest in _records(current["manifest-list"]) if current else ():
        assert manifest["content"] == 0, "a manifest of deletes"
        entries = _records(manifest["manifest_path"])
        found += [str(_path(one["data_file"]["file_path"])) for one in entries if one["status"] != _DELETED]
    return found


def _named(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files of bad rows that the property with the positions names."""
    text = table["properties"].get(_POSITIONS)
    groups = json.loads(zlib.decompress(base64.b85decode(text)))["groups"] if text else {}
    for group in groups.values():
        for one in group["named"]:
            yield from (str(_path(json.loads(file["stats"])["location"])) for file in one["files"])


def _lacks(connection: duckdb.DuckDBPyConnection, files: list[str], one: str) -> bool:
    """Return whether files lack a record of one file."""
    if not files:
        return True
    ((lacking,),) = connection.execute(_LACKING, {"one": one, "files": files}).fetchall()
    return bool(lacking)


def _records(location: str) -> list[dict[str, Any]]:
    with _path(location).open("rb") as stream:
        return [one for one in fastavro.reader(stream) if isinstance(one, dict)]


def _path(location: str) -> Path:
    return Path(urllib.parse.unquote(location.removeprefix("file://")))
