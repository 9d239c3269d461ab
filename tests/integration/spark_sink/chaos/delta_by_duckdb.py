"""Delta tables as DuckDB reads them: from the log's text and the Parquet files, by none of the project's libraries."""

import urllib.parse
from collections.abc import Sequence
from pathlib import Path

import duckdb

_ACTIONS = r"""
SELECT regexp_extract(filename, '(\d+)\.json$', 1)::BIGINT AS version,
       json->>'$.add.path' AS added, json->>'$.remove.path' AS removed
FROM read_ndjson_objects(?, filename = true, maximum_object_size = 268435456)
"""
_ACTIVE = f"""
WITH actions AS ({_ACTIONS}), changes AS (
    SELECT added AS path, version, true AS is_there FROM actions WHERE added IS NOT NULL
    UNION ALL SELECT removed, version, false FROM actions WHERE removed IS NOT NULL)
SELECT path FROM changes GROUP BY path HAVING arg_max(is_there, version) ORDER BY path
"""
_ADDED = f"SELECT DISTINCT added FROM ({_ACTIONS}) WHERE added IS NOT NULL"
_NAMED = """
SELECT DISTINCT unnest(json->>'$.commitInfo.kafka-azimuth.quarantined.files[*].path')
FROM read_ndjson_objects(?, maximum_object_size = 268435456)
"""
_SUFFIX = "_quarantine"


def tables(root: Path) -> list[Path]:
    """The Delta tables below a folder; quarantines are not listed."""
    found = sorted(log.parent for log in root.rglob("_delta_log"))
    return [one for one in found if not one.name.endswith(_SUFFIX)]


def good_files(connection: duckdb.DuckDBPyConnection, root: Path) -> list[str]:
    """The data files of all tables without the quarantines."""
    return [file for one in tables(root) for file in active(connection, one)]


def bad_files(connection: duckdb.DuckDBPyConnection, root: Path) -> list[str]:
    """The files of the quarantines of all tables."""
    return [file for one in tables(root) for file in quarantined(connection, one)]


def active(connection: duckdb.DuckDBPyConnection, table: Path) -> list[str]:
    """The data files of the newest version: those whose last action added them."""
    rows = connection.execute(_ACTIVE, [_log(table)]).fetchall()
    return [_file(table, path) for (path,) in rows]


def quarantined(connection: duckdb.DuckDBPyConnection, table: Path) -> list[str]:
    """The files of a table's quarantine: its own, and those that a commit of the table names for it.

    A writer may die between the two commits; the next one adds the files that are named.
    """
    quarantine = table.with_name(table.name + _SUFFIX)
    named = {path for (path,) in connection.execute(_NAMED, [_log(table)]).fetchall()}
    if not (quarantine / "_delta_log").exists():
        return [_file(quarantine, path) for path in sorted(named)]
    known = {path for (path,) in connection.execute(_ADDED, [_log(quarantine)]).fetchall()}
    return active(connection, quarantine) + [_file(quarantine, path) for path in sorted(named - known)]


def view(connection: duckdb.DuckDBPyConnection, name: str, files: Sequence[str]) -> list[str]:
    """Make a view of the rows of Parquet files; its columns."""
    if not files:
        connection.execute(
            f"CREATE VIEW {name} AS SELECT ''::VARCHAR topic, 0 AS partition, 0::BIGINT AS \"offset\", "
            "''::BLOB AS value WHERE false"
        )
    else:
        connection.read_parquet(list(files), union_by_name=True).create_view(name)
    return [str(row[0]) for row in connection.execute(f"DESCRIBE {name}").fetchall()]


def _log(table: Path) -> str:
    return f"{table}/_delta_log/*.json"


def _file(table: Path, path: str) -> str:
    return str(table / urllib.parse.unquote(path))
