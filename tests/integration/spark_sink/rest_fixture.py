"""Iceberg's own REST catalog for tests, from Maven Central, as a process."""

import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

import pytest

from spark_sink.demo.cluster.ports import choose_ports
from tests.integration.spark_sink.tied import launch

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
_START_S = 120.0


@contextmanager
def rest_catalog(root: Path) -> Iterator[str]:
    """Run the catalog, with its tables in a folder; skip the test if Maven or Java is missing.

    Yields:
        Its address.
    """
    java, jars = shutil.which("java"), _jars(root / "jars")
    if java is None:
        pytest.skip("java is missing")
    [port] = choose_ports(1)
    # CATALOG_REST_PORT is the property rest.port: the fixture reads its properties so.
    environment = {**os.environ, "CATALOG_WAREHOUSE": f"file://{root}/rest", "CATALOG_REST_PORT": str(port)}
    log = root / "rest.log"
    server = launch([java, "-cp", f"{jars}/*", "org.apache.iceberg.rest.RESTCatalogServer"], log, environment)
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + _START_S
    while not _answers(f"{address}/v1/config"):
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
    yield address
    server.terminate()
    server.wait()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):  # noqa: S310 -- ours
            return True
    except (URLError, OSError):
        return False


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
