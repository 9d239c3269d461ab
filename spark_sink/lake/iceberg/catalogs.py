"""Addresses of Iceberg tables, and the catalogs that hold them.

An address is `iceberg://<catalog>.<namespace>.<table>`. The properties of the catalog are those options of a storage
that begin with `catalog.`; pyiceberg's configuration file and environment variables complete them.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import unquote

from spark_sink.errors import OptionError, TableError, plain, plain_with_class
from spark_sink.lake.iceberg.repeated_requests import answered
from spark_sink.lake.table_addresses import (
    CATALOG,
    CLUSTER,
    ICEBERG,
    PLACEHOLDER,
    Storage,
    is_iceberg,
    local_path,
    refuse_mounted_store,
    table_storage,
)

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_Created = TypeVar("_Created")
_DATABASE = "catalog.db"
_OTHER = {"uri", "type", "py-catalog-impl"}  # each of them means another catalog than the SQLite database
_NO_DRIVER = ("postgresql://", "mysql://", "mariadb://")  # SQLAlchemy takes a driver that kafka-azimuth[sql] lacks
_DRIVERS = "; name the driver in catalog.uri, as in postgresql+psycopg:// and mysql+pymysql:// of kafka-azimuth[sql]"
_CUT = "#?"  # pyiceberg parses a file's place as a URL, so that the place of a file would end before them
_LOCK = threading.Lock()
_PATIENCE_S, _LONGEST_PAUSE_S = 30.0, 0.2
# The words of SQLite, PostgreSQL, MySQL and MariaDB; their drivers have no common class for these errors.
_RACES = ("already exists", "locked", "unique constraint", "duplicate")


class Identifier(NamedTuple):
    """The name of a table: its catalog, and the path in it, which ends with the table."""

    catalog: str
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name in messages."""
        return ".".join((self.catalog, *self.path))


def iceberg_address(path: str) -> str:
    """Return the address of the table `catalog.namespace.table`.

    Raises:
        OptionError: it has fewer parts or an empty part, a placeholder stands for the catalog, or pyiceberg would take
            a part of the name for that of another folder.
    """
    name = path.removeprefix(ICEBERG)
    if cut := next((one for one in _CUT if one in name), None):
        raise OptionError(f"{path!r}: the folder of this table would end before the {cut}; leave it out of the name")
    if len(parts := name.split(".")) < 3 or not all(parts) or "/" in name:  # noqa: PLR2004 -- catalog, namespace, table
        raise OptionError(f"{path!r} is not the name of an Iceberg table, need catalog.namespace.table")
    if "{" in parts[0]:
        raise OptionError(f"{path!r}: {PLACEHOLDER} or {CLUSTER} cannot stand for the catalog; name the catalog")
    return ICEBERG + name


def identifier(address: str) -> Identifier:
    """Return the table of an address from `iceberg_address`."""
    catalog, *path = address.removeprefix(ICEBERG).split(".")
    return Identifier(catalog, tuple(path))


def open_catalog(name: str, storage: Storage) -> "Catalog":
    """Return the catalog of this name, the same one for the same options.

    With a local `catalog.warehouse` and no other catalog, it is an SQLite database in that folder.

    Raises:
        OptionError: pyiceberg is not installed, or the options do not describe a catalog.
        TableError: the catalog cannot be reached.
    """
    given = {key[len(CATALOG) :]: value for key, value in storage.items() if key.startswith(CATALOG)}
    with _LOCK:  # two threads would create the tables of a new database at the same time
        return _opened(name, tuple(sorted(given.items())))


def refuse_unknown_catalog(address: str, storage: Storage) -> None:
    """Refuse options of an Iceberg table that describe no catalog; one that cannot be reached may be there later.

    Raises:
        OptionError: pyiceberg is not installed, or the options do not describe a catalog.
    """
    if is_iceberg(address) and not is_absent(storage):
        with contextlib.suppress(TableError):
            open_catalog(identifier(address).catalog, storage)


@lru_cache(maxsize=64)
def _opened(name: str, given: tuple[tuple[str, str], ...]) -> "Catalog":
    try:
        from pyiceberg.catalog import (
            AVAILABLE_CATALOGS,
            CatalogType,
            load_catalog,
        )
    except ImportError as error:
        raise OptionError(f"Iceberg needs pyiceberg: pip install 'kafka-azimuth[iceberg]' ({error})") from error
    from pyiceberg.exceptions import NotInstalledError

    from spark_sink.lake.iceberg.whole_avro_files import read_only_whole
    from spark_sink.lake.iceberg.whole_metadata_files import read_only_whole_metadata

    read_only_whole()
    read_only_whole_metadata()
    # The type may be in pyiceberg's configuration file only.
    AVAILABLE_CATALOGS[CatalogType.REST] = _answering_rest
    AVAILABLE_CATALOGS[CatalogType.HIVE] = _fenced_hive
    AVAILABLE_CATALOGS[CatalogType.SQL] = _answering_sql
    properties = _with_defaults(dict(given))
    hint = _DRIVERS if properties.get("uri", "").startswith(_NO_DRIVER) else ""
    try:
        return answered(f"catalog {name!r}", lambda: repeat_lost_races(lambda: load_catalog(name, **properties)))
    except (ImportError, NotInstalledError) as error:
        # pyiceberg's own sentence names SQLAlchemy for every driver of a database.
        raise OptionError(f"catalog {name!r}: a package is missing: {plain(error.__cause__ or error)}{hint}") from error
    except ValueError:  # its text has the values of all options, and one may be a password
        given_names = ", ".join(sorted(properties))
        fault = f"pyiceberg knows no catalog with {given_names}" if given_names else "it has no options"
        raise OptionError(
            f"catalog {name!r}: {fault}; give catalog.warehouse=FOLDER for a local catalog, "
            "or catalog.type and catalog.uri"
        ) from None
    except Exception as error:  # each kind of catalog has its own errors
        raise TableError(f"catalog {name!r} cannot be opened: {plain_with_class(error)}") from error


def _answering_rest(name: str, properties: Mapping[str, str]) -> "Catalog":
    from spark_sink.lake.iceberg.rest_answers import AnsweringRestCatalog

    return AnsweringRestCatalog(name, **properties)


def _answering_sql(name: str, properties: Mapping[str, str]) -> "Catalog":
    from spark_sink.lake.iceberg.sql_answers import AnsweringSqlCatalog

    return AnsweringSqlCatalog(name, **properties)


def _fenced_hive(name: str, properties: Mapping[str, str]) -> "Catalog":
    from spark_sink.lake.iceberg.hive_metastore import FencedHiveCatalog

    return FencedHiveCatalog(name, **properties)


def repeat_lost_races(create: Callable[[], _Created]) -> _Created:
    """Create something in a catalog; repeat it if another writer was creating the same thing.

    The first writers of a catalog create its database, namespaces and tables at the same time. For some of these races
    pyiceberg passes on the database's own error.

    Args:
        create: does nothing if the thing exists.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return create()
        except Exception as error:  # each catalog has its own errors
            if time.monotonic() > deadline or not any(word in str(error).lower() for word in _RACES):
                raise
        time.sleep(random.uniform(0, _LONGEST_PAUSE_S))  # noqa: S311 -- spreads writers


def local_warehouse(storage: Storage) -> Path | None:
    """Return the folder of the tables; None if it is not on this machine.

    Raises:
        OptionError: it is empty, which would mean the current folder; the tables would be in another folder; or it is a
            mounted store.
    """
    warehouse = storage.get(f"{CATALOG}warehouse", "s3://")
    if not warehouse.strip():
        raise OptionError(f"{CATALOG}warehouse is empty, need the folder or the address of the tables")
    folder = local_path(warehouse)
    if folder is None:
        return None
    folder = folder.resolve()
    refuse_mounted_store(str(folder))
    if any(one in str(folder) for one in _CUT) or unquote(str(folder)) != str(folder):
        raise OptionError(
            f"catalog.warehouse={folder}: a #, a ? or a % with two hexadecimal digits in it would be read as another "
            "folder; rename it"
        )
    return folder


def is_absent(storage: Storage) -> bool:
    """Return whether the options mean an SQLite catalog that does not exist, and that `open_catalog` would create."""
    folder = local_warehouse(storage)
    if folder is None or any(CATALOG + one in storage for one in _OTHER):
        return False
    return not (folder / _DATABASE).exists()


def _with_defaults(given: dict[str, str]) -> dict[str, str]:
    """Complete the properties of a local catalog; errors as those of `local_warehouse`."""
    folder = local_warehouse(table_storage({}, given))
    if folder is None:
        return given
    if given.keys() & _OTHER:
        return {**given, "warehouse": f"file://{folder}"}
    folder.mkdir(parents=True, exist_ok=True)
    # Writers of one machine wait for each other's commits.
    uri = f"sqlite:///{Path(folder, _DATABASE)}?timeout=60"
    return {**given, "type": "sql", "uri": uri, "warehouse": f"file://{folder}"}
