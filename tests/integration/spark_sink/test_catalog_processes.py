"""Processes on catalogs that are servers: a sink on Spark, agents of a fleet, and jobs with claims."""

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_sink import positions
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.spark_sink.fleet.fleet_process import (
    FleetProcesses,
    config,
    delete_topics,
    make_topics,
    send,
    wait_until,
)
from tests.integration.spark_sink.hive_fixture import hive_metastore
from tests.integration.spark_sink.rest_fixture import rest_catalog
from tests.integration.spark_sink.small_servers import BUCKET, small_aws

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.matrix]

CANARY = "canary-9fd1"
KEYS = {"access-key-id": "someone", "secret-access-key": CANARY, "region": "us-east-1"}
RECORDS = 300
SINK = """
bootstrap_servers = "{servers}"
group = "{name}"
subscribe = "{name}.t"
table = "{table}"
table_format = "iceberg"
checkpoint = "{root}/checkpoint"
trigger = "available-now"
master = "local[1]"
{catalog}
"""


@contextmanager
def _glue(root: Path) -> Iterator[Mapping[str, str]]:
    with small_aws(root / "aws.log") as address:
        given = {"type": "glue", "warehouse": f"s3://{BUCKET}", "s3.endpoint": address, "glue.endpoint": address}
        yield {**given, **{f"{service}.{name}": value for service in ("s3", "glue") for name, value in KEYS.items()}}


@contextmanager
def _rest(root: Path) -> Iterator[Mapping[str, str]]:
    with rest_catalog(root) as address:
        yield {"type": "rest", "uri": address}


@contextmanager
def _hive(root: Path) -> Iterator[Mapping[str, str]]:
    with hive_metastore(root) as metastore:
        yield {name.removeprefix("catalog."): value for name, value in metastore.storage.items()}


@pytest.fixture(scope="module", params=[_rest, _glue, _hive], ids=["REST", "Glue and S3", "Hive"])
def catalog(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The properties of a catalog that runs as a server."""
    with request.param(tmp_path_factory.mktemp("catalog")) as properties:
        yield properties


class Ingestion:
    """One set of processes that bring one topic into one table.

    Args:
        cluster: the brokers.
        catalog: properties of the catalog.
        root: an empty folder.
        name: of the group; the topic is `<name>.t`, the table `lake.raw.<name>`.
    """

    def __init__(self, cluster: Cluster, catalog: Mapping[str, str], root: Path, name: str) -> None:
        self.cluster, self.catalog, self.root, self.name = cluster, catalog, root, name
        self.storage = {f"catalog.{key}": value for key, value in catalog.items()}
        self.sent = 0

    def send(self) -> None:
        """Put records into the topic."""
        send(self.cluster.bootstrap_servers, {f"{self.name}.t": RECORDS})
        self.sent += RECORDS

    def wait(self) -> None:
        """Until all records are in the table."""
        wait_until(self._arrived, 180, "all records in the table", self.logs)

    def logs(self) -> str:
        """The output of the processes."""
        return "\n".join(log.read_text()[-2000:] for log in self.root.glob("*.log"))

    def section(self) -> str:
        """The catalog in a file of settings."""
        return "\n".join(["[catalog]", *(f'"{key}" = "{value}"' for key, value in self.catalog.items())])

    def _arrived(self) -> bool:
        return sum(positions(f"iceberg://lake.raw.{self.name}", self.name, self.storage).values()) >= self.sent


def sink(at: Ingestion) -> None:
    """Run the sink twice: the second finds the positions of the first in the catalog, without its checkpoint."""
    for number in range(2):
        at.send()
        root = at.root / f"{number}"
        root.mkdir()
        text = SINK.format(
            servers=at.cluster.bootstrap_servers,
            name=at.name,
            table=f"lake.raw.{at.name}",
            root=root,
            catalog=at.section(),
        )
        (root / "sink.toml").write_text(text)
        with (at.root / "sink.log").open("ab") as log:
            command = [sys.executable, "-m", "spark_sink", "sink", "--config", str(root / "sink.toml")]
            assert subprocess.run(command, stdout=log, stderr=log, check=False, timeout=300).returncode == 0, at.logs()
    at.wait()


def fleet(at: Ingestion) -> None:
    """Kill one of two agents between two writes."""
    text = config(at.name, at.root, at.cluster, 'table_format = "iceberg"')
    text = text.replace(f"{at.root}/lake/{{cluster}}", f"lake.raw.{at.name}") + at.section()
    with FleetProcesses(at.root, text) as agents:
        agents.start("a", "b")
        at.send()
        at.wait()
        agents.kill("a")
        at.send()
        at.wait()
        assert agents.stop() == {"b": 0}


def jobs(at: Ingestion) -> None:
    """Kill one of two jobs between two writes."""
    command = [sys.executable, "-m", "spark_sink", "claims", "run", "--group", at.name]
    command += ["--table", f"lake.raw.{at.name}", "--table-format", "iceberg", "--lease-s", "3", "--longest-s", "0.5"]
    command += ["--database", f"sqlite:///{at.root}/claims.db", "--bootstrap-servers", at.cluster.bootstrap_servers]
    command += ["--subscribe", f"{at.name}.t"]
    command += [word for name, value in at.catalog.items() for word in ("--catalog", f"{name}={value}")]
    running: list[subprocess.Popen[bytes]] = []
    try:
        for owner in ("killed", "lasting"):
            with (at.root / f"{owner}.log").open("ab") as log:
                running.append(subprocess.Popen([*command, "--owner", owner], stdout=log, stderr=log))
        at.send()
        at.wait()
        running[0].kill()
        at.send()
        at.wait()
        running[1].terminate()
        assert running[1].wait(60) == 0, at.logs()
    finally:
        for one in running:
            one.kill()
            one.wait()


@pytest.mark.parametrize("run", [sink, fleet, jobs], ids=lambda one: one.__name__)
def test_processes_write_each_record_once_on_a_catalog_of_servers(
    run: Callable[[Ingestion], None], catalog: Mapping[str, str], cluster: Cluster, tmp_path: Path
) -> None:
    """A restart or a kill in the middle; positions, rows and the command's answer agree, and no log has the secret."""
    name = f"{run.__name__}{uuid.uuid4().hex[:6]}"
    make_topics(cluster.bootstrap_servers, [f"{name}.t"])
    at = Ingestion(cluster, catalog, tmp_path, name)
    run(at)
    address = f"iceberg://lake.raw.{name}"
    report = verify(address, name, at.storage)
    assert (report.rows, report.duplicates, report.missing) == (at.sent, 0, 0), at.logs()
    flags = [word for key, value in at.storage.items() for word in ("--storage", f"{key}={value}")]
    command = [sys.executable, "-m", "spark_sink", "verify", address, "--json", *flags]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["rows"] == at.sent
    assert CANARY not in at.logs() + checked.stdout + checked.stderr
    delete_topics(cluster.bootstrap_servers, [f"{name}.t"])
