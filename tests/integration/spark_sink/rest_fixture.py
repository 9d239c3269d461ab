"""Iceberg's own REST catalog for tests, from Maven Central, as a process."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.spark_sink.small_servers import answering, server

_ICEBERG, _JETTY, _HADOOP = "1.10.0", "11.0.26", "3.4.1"
# The fixture names none of what it needs. Only the servlets of Iceberg's tests, and not their other dependencies.
_JARS = (
    ("org.apache.iceberg", "iceberg-open-api", _ICEBERG, "test-fixtures"),
    ("org.apache.iceberg", "iceberg-core", _ICEBERG, ""),
    ("org.apache.iceberg", "iceberg-core", _ICEBERG, "tests"),
    ("org.eclipse.jetty", "jetty-servlet", _JETTY, ""),
    ("org.xerial", "sqlite-jdbc", "3.50.3.0", ""),
    ("org.apache.hadoop", "hadoop-client-api", _HADOOP, ""),
    ("org.apache.hadoop", "hadoop-client-runtime", _HADOOP, ""),
    ("org.slf4j", "slf4j-simple", "2.0.17", ""),
)


@contextmanager
def rest_catalog(root: Path) -> Iterator[str]:
    """Run the catalog, with its tables in a folder; skip the test if Maven or Java is missing.

    Yields:
        Its address.
    """
    java, jars = shutil.which("java"), _jars(root / "jars")
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


def _jars(folder: Path) -> Path:
    """Fetch the jars; Maven keeps them in its repository for the next run."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("Maven is missing")
    folder.mkdir()
    pom = folder.parent / "pom.xml"
    wanted = "".join(map(_dependency, _JARS))
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>"
        f"<dependencies>{wanted}</dependencies></project>"
    )
    command = [maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        pytest.skip("Maven cannot fetch Iceberg's REST catalog")
    return folder


def _dependency(jar: tuple[str, str, str, str]) -> str:
    group, name, version, classifier = jar
    kind = f"<classifier>{classifier}</classifier>" if classifier else ""
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>{kind}"
        f"{alone if classifier else ''}</dependency>"
    )
