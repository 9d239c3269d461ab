"""Iceberg's own REST catalog for tests, from Maven Central, as a process."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.spark_sink.maven_jars import Jar, fetch_jars
from tests.integration.spark_sink.small_servers import answering, server

_ICEBERG, _JETTY, _HADOOP = "1.10.0", "11.0.26", "3.4.1"
# The fixture names none of what it needs. Only the servlets of Iceberg's tests, and not their other dependencies.
_JARS = (
    Jar("org.apache.iceberg", "iceberg-open-api", _ICEBERG, "test-fixtures"),
    Jar("org.apache.iceberg", "iceberg-core", _ICEBERG),
    Jar("org.apache.iceberg", "iceberg-core", _ICEBERG, "tests"),
    Jar("org.eclipse.jetty", "jetty-servlet", _JETTY),
    Jar("org.xerial", "sqlite-jdbc", "3.50.3.0"),
    Jar("org.apache.hadoop", "hadoop-client-api", _HADOOP),
    Jar("org.apache.hadoop", "hadoop-client-runtime", _HADOOP),
    Jar("org.slf4j", "slf4j-simple", "2.0.17"),
)


@contextmanager
def rest_catalog(root: Path) -> Iterator[str]:
    """Run the catalog, with its tables in a folder; skip the test if Maven or Java is missing.

    Yields:
        Its address.
    """
    java, jars = shutil.which("java"), fetch_jars(root / "jars", _JARS, "Iceberg's REST catalog")
    if java is None:
        pytest.skip("java is missing")
    command = [java, "-cp", f"{jars}/*", "org.apache.iceberg.rest.RESTCatalogServer"]
    warehouse = {"CATALOG_WAREHOUSE": f"file://{root}/rest"}
    with server(
        lambda _: command,
        root / "rest.log",
        answering("/v1/config"),
        # CATALOG_REST_PORT is the property rest.port: the fixture reads its properties so.
        lambda port: {**os.environ, **warehouse, "CATALOG_REST_PORT": str(port)},
    ) as address:
        yield address
