"""Creates an Iceberg table, and the namespaces above it."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_sink.errors import TableError, plain_with_class
from spark_sink.lake.iceberg.added_columns import refuse_ambiguous
from spark_sink.lake.iceberg.catalogs import Identifier, open_catalog, repeat_lost_races
from spark_sink.lake.iceberg.columns import numbered, refuse_foreign_types
from spark_sink.lake.iceberg.partition_terms import check_terms, spec_of
from spark_sink.lake.iceberg.repeated_requests import answered
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_settings import TableSettings

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

# Small manifests are joined often, and large ones never again, so that a commit costs the same as the table ages.
PROPERTIES = {
    "format-version": "2",
    "commit.manifest.min-count-to-merge": "20",
    "commit.manifest.target-size-bytes": str(256 << 10),
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


def create_table(
    address: Identifier, storage: Storage, settings: TableSettings, schema: pa.Schema, exists: Callable[[], bool]
) -> None:
    """Create the table and its namespace; no error if another writer was faster.

    Args:
        address: the catalog, the namespace and the name of the table.
        storage: options, with those of the catalog.
        settings: the partition terms and the properties of the table.
        schema: its columns.
        exists: whether there is such a table, asked after the catalog has refused.

    Raises:
        SchemaError: Iceberg does not have the type of a column, it cannot be partitioned so, or two fields have one
            full name.
        TableError: the catalog or the storage refused.
    """
    name, path = address.name, address.path
    refuse_foreign_types(name, schema)
    refuse_ambiguous(name, schema)
    check_terms(schema, settings.terms)
    catalog = open_catalog(address.catalog, storage)
    try:
        for end in range(1, len(path)):
            answered(name, partial(_make_namespace, catalog, path[:end]))
        columns = numbered(schema)
        spec = spec_of(settings.terms, columns)
        properties = {**PROPERTIES, **settings.properties}
        make = partial(catalog.create_table_if_not_exists, path, columns, None, spec, properties=properties)
        answered(name, lambda: repeat_lost_races(make))
    except Exception as error:  # each catalog has its own errors
        if not exists():
            why = "a view has this name" if _is_view(catalog, path) else plain_with_class(error)
            raise TableError(f"{name}: the table cannot be created: {why}") from error


def _make_namespace(catalog: "Catalog", path: tuple[str, ...]) -> None:
    """Create a namespace; one that exists is enough for a user who may create tables in it only."""
    try:
        repeat_lost_races(partial(catalog.create_namespace_if_not_exists, path))
    except Exception:
        if not catalog.namespace_exists(path):
            raise


def _is_view(catalog: "Catalog", path: tuple[str, ...]) -> bool:
    try:
        return catalog.view_exists(path)
    except Exception:  # noqa: BLE001 -- few catalogs have views, and the caller has an error to report
        return False
