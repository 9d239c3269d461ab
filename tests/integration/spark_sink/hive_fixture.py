"""Hive's metastore for tests, from Maven Central, as a process whose database outlives it."""

import os
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_sink.demo.cluster.ports import choose_ports
from tests.integration.assignors.claims.conftest import PostgreSQL
from tests.integration.spark_sink.maven_jars import Jar, fetch_jars
from tests.integration.spark_sink.tied import launch
from tests.waiting import wait_until

_HIVE, _HADOOP = "4.0.1", "3.4.1"
# The archive has the metastore, its libraries and its database's schema, but nothing that Hadoop brings along.
_FILES = (
    Jar("org.apache.hive", "hive-standalone-metastore-server", _HIVE, "bin", "tar.gz"),
    Jar("org.apache.hadoop", "hadoop-client-api", _HADOOP),
    Jar("org.apache.hadoop", "hadoop-client-runtime", _HADOOP),
    Jar("org.apache.hadoop", "hadoop-hdfs", _HADOOP, alone=True),
    Jar("com.fasterxml.jackson.core", "jackson-databind", "2.16.1"),
    Jar("com.google.code.gson", "gson", "2.9.0"),
    Jar("commons-collections", "commons-collections", "3.2.2"),
    Jar("commons-io", "commons-io", "2.11.0"),
    Jar("javax.servlet", "javax.servlet-api", "3.1.0"),
    Jar("org.apache.httpcomponents", "httpclient", "4.5.13"),
    Jar("org.slf4j", "slf4j-api", "1.7.36"),
)
_START_S = 240.0


class Metastore:
    """A metastore that may be stopped and started again, on the same port and with the same tables.

    Attributes:
        root: its folder.
        storage: options of the catalog.
        pid: of the running process; None if there is none.
    """

    def __init__(self, root: Path, java: str, jars: Path, database: PostgreSQL | None) -> None:
        self.root = root
        self._home = root / "hive"
        self._java = java
        [self._port] = choose_ports(1)
        self.storage: Mapping[str, str] = {
            "catalog.type": "hive",
            "catalog.uri": f"thrift://127.0.0.1:{self._port}",
            "catalog.warehouse": f"file://{root}/warehouse",
        }
        self._classes = f"{self._home}/lib/*:{jars}/*"
        self._process: subprocess.Popen[bytes] | None = None
        _unpack(next(jars.glob("*.tar.gz")), self._home)
        # Derby is the database of a metastore without settings; it is too slow for many writers.
        kind, self._driver, self._user = "derby", "org.apache.derby.jdbc.EmbeddedDriver", "APP"
        self._database = f"jdbc:derby:;databaseName={root}/database;create=true"
        if database is not None:
            kind, self._driver, self._user = "postgres", "org.postgresql.Driver", database.user
            self._database = f"jdbc:{database.address.replace('postgres@', '')}"
        schema = ["-initSchema", "-dbType", kind, "-url", self._database, "-driver", self._driver]
        user = ["-userName", self._user, "-passWord", "mine"]
        tool = "org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool"
        made = subprocess.run(
            [java, "-cp", self._classes, tool, *schema, *user],
            env=self._environment,
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
            timeout=_START_S,
        )
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]

    @property
    def pid(self) -> int | None:
        """The id of the process."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        settings = {
            "javax.jdo.option.ConnectionURL": self._database,
            "javax.jdo.option.ConnectionDriverName": self._driver,
            "javax.jdo.option.ConnectionUserName": self._user,
            "metastore.warehouse.dir": f"{self.root}/warehouse",
            "hive.metastore.event.db.notification.api.auth": "false",
            # So that the lock of a dead writer is removed within seconds.
            "metastore.txn.timeout": "4s",
            "metastore.housekeeping.threads.on": "true",
            "metastore.acid.housekeeper.interval": "1s",
            "metastore.hmshandler.retry.interval": "100ms",
        }
        given = [part for name, value in settings.items() for part in ("--hiveconf", f"{name}={value}")]
        server = ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self._port)]
        options = ["-Xmx384m", "-XX:TieredStopAtLevel=1"]
        command = [self._java, *options, "-cp", self._classes, *server, *given]
        log = self.root / "metastore.log"
        self._process = process = launch(command, log, self._environment, cwd=self.root)

        def accepts() -> bool:
            assert process.poll() is None, log.read_text()[-4000:]
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", self._port)) == 0

        wait_until(accepts, _START_S, "the metastore")

    def stop(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def _environment(self) -> Mapping[str, str]:
        return {**os.environ, "METASTORE_HOME": str(self._home)}


def _unpack(archive: Path, home: Path) -> None:
    """Unpack the libraries and the schemas of two databases, without the archive's top folder."""
    with tarfile.open(archive) as packed:
        for one in packed:
            path = Path(*Path(one.name).parts[1:])
            if one.isfile() and (path.parts[0] == "lib" or {"derby", "postgres"} & {*path.parts}):
                home.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
                content = packed.extractfile(one)
                assert content is not None
                with home.joinpath(path).open("wb") as file:
                    shutil.copyfileobj(content, file)


@contextmanager
def hive_metastore(root: Path, database: PostgreSQL | None = None) -> Iterator[Metastore]:
    """Run a metastore; skip the test if Maven or Java is missing.

    Args:
        root: an empty folder.
        database: a running one for what the metastore stores; Derby by default.
    """
    java, jars = shutil.which("java"), fetch_jars(root / "jars", _FILES, "Hive's metastore")
    if java is None:
        pytest.skip("java is missing")
    metastore = Metastore(root, java, jars, database)
    metastore.start()
    try:
        yield metastore
    finally:
        metastore.stop()


@contextmanager
def hive_on_postgresql(root: Path) -> Iterator[Metastore]:
    """Run a metastore that stores in PostgreSQL; skip the test if there is none."""
    binaries = PostgreSQL.found()
    if binaries is None:
        pytest.skip(f"there is no PostgreSQL here: apt install {PostgreSQL.package}")
    database = PostgreSQL(binaries)
    try:
        with hive_metastore(root, database) as metastore:
            yield metastore
    finally:
        database.close()
