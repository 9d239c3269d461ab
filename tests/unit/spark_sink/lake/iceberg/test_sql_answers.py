"""The connections of a catalog in a database end with it."""

import gc
from pathlib import Path

from spark_sink.lake.iceberg.sql_answers import AnsweringSqlCatalog


def test_a_catalog_that_is_forgotten_closes_its_connections(tmp_path: Path) -> None:
    """A process keeps the catalogs that it used last; psycopg warns about a connection that is dropped open."""
    catalog = AnsweringSqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    engine, pool = catalog.engine, catalog.engine.pool
    assert catalog.list_namespaces() == []
    assert pool.checkedin() == 1  # type: ignore[attr-defined]
    del catalog
    gc.collect()
    assert pool.checkedin() == 0  # type: ignore[attr-defined]
    assert engine.pool is not pool
