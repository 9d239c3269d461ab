"""An agent and a job with claims tell what they did; whatever is wrong with the ops log, they go on."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_sink.demo.cluster import Cluster
from spark_sink.lake.ops_log.ops_counts import OpsCounts, Written
from spark_sink.lake.ops_log.ops_table import OpsTable
from spark_sink.lake.ops_log.ops_writer import OpsWriter
from tests.integration.spark_sink.fleet.fleet_process import (
    FleetProcesses,
    config,
    delete_topics,
    make_topics,
    send,
    wait_until,
)
from tests.integration.spark_sink.small_disk import small_disk

pytestmark = [pytest.mark.integration, pytest.mark.long]

COUNTS = {"a": 40, "b": 7, "idle": 0}


@pytest.fixture
def topics(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """Their common name; they are `<name>.a`, `<name>.b` and `<name>.idle`, with records in the first two."""
    name = f"ops-{request.node.name[5:20]}-{os.getpid()}".replace("[", "-").replace("_", "-")
    names = [f"{name}.{one}" for one in COUNTS]
    make_topics(cluster.bootstrap_servers, names)
    send(cluster.bootstrap_servers, {f"{name}.{one}": count for one, count in COUNTS.items()})
    yield name
    delete_topics(cluster.bootstrap_servers, names)


def rows(table: Path) -> int:
    """Of the lake's table; 0 before it is there."""
    there = DeltaTable.is_deltatable(str(table))
    return DeltaTable(str(table)).to_pyarrow_table(columns=["offset"]).num_rows if there else 0


def told(table: Path, column: str = "rows") -> dict[str | None, int]:
    """The ops log's sums by topic."""
    found = Counter[str | None]()
    if DeltaTable.is_deltatable(str(table)):
        for row in DeltaTable(str(table)).to_pyarrow_table().to_pylist():
            found[row["topic"]] += row[column]
    return dict(found)


def wanted(name: str) -> dict[str | None, int]:
    """The records by topic; a topic without any has no row."""
    return {f"{name}.{one}": count for one, count in COUNTS.items() if count}


def test_an_agent_writes_what_it_did_at_intervals_and_at_its_end(cluster: Cluster, tmp_path: Path, topics: str) -> None:
    """By topic, as the table has it; the second records come after the first interval."""
    table, ops = tmp_path / "lake" / "home", tmp_path / "ops"
    more = f'ops_log = "{ops}"\nops_log_s = 1'
    with FleetProcesses(tmp_path, config(topics, tmp_path, cluster, more)) as fleet:
        fleet.start("one")
        wait_until(lambda: told(ops) == wanted(topics), 120, "all counted", lambda: fleet.log("one"))
        send(cluster.bootstrap_servers, {f"{topics}.a": 5})
        wait_until(lambda: rows(table) == 52, 60, "all written", lambda: fleet.log("one"))
        assert fleet.stop() == {"one": 0}
    assert told(ops) == wanted(topics) | {f"{topics}.a": 45}
    (first, *_) = DeltaTable(str(ops)).to_pyarrow_table().to_pylist()
    assert (first["kind"], first["group_id"], first["agent"], first["source"]) == ("fleet", topics, "one", "home")
    assert first["table_uri"] == str(table)
    sizes = sum(len(str(number)) for number in (*range(40), *range(5)))
    assert told(ops, "bytes")[f"{topics}.a"] == sizes


def test_a_job_with_claims_writes_what_it_did(cluster: Cluster, tmp_path: Path, topics: str) -> None:
    """The same by the flags of `azimuth claims run`; it ends before the first interval."""
    table, ops, log = tmp_path / "table", tmp_path / "ops", tmp_path / "job.log"
    command = [sys.executable, "-m", "spark_sink", "claims", "run", "--group", topics, "--table", str(table)]
    command += ["--database", f"sqlite:///{tmp_path}/claims.db", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--subscribe-pattern", f"{topics}[.].*", "--longest-s", "0.5", "--ops-log", str(ops)]
    with log.open("wb") as out:
        job = subprocess.Popen([*command, "--owner", "one"], stdout=out, stderr=out)
    try:
        wait_until(lambda: rows(table) == 47, 120, "all written", log.read_text)
        job.terminate()
        assert job.wait(60) == 0, log.read_text()
    finally:
        job.kill()
        job.wait()
    assert told(ops) == wanted(topics), log.read_text()
    (first, *_) = DeltaTable(str(ops)).to_pyarrow_table().to_pylist()
    assert (first["kind"], first["agent"], first["source"]) == ("claims", "one", None)


def test_an_agent_goes_on_beside_a_foreign_table(cluster: Cluster, tmp_path: Path, topics: str) -> None:
    """It is logged once, and the other table has not changed."""
    table, ops = tmp_path / "lake" / "home", tmp_path / "ops"
    write_deltalake(str(ops), pa.table({"id": [1, 2]}))
    before = DeltaTable(str(ops)).version()
    more = f'ops_log = "{ops}"\nops_log_s = 1'
    with FleetProcesses(tmp_path, config(topics, tmp_path, cluster, more)) as fleet:
        fleet.start("one")
        wait_until(lambda: rows(table) == 47, 120, "all written", lambda: fleet.log("one"))
        wait_until(lambda: "ops log: " in fleet.log("one"), 30, "the reason", lambda: fleet.log("one"))
        send(cluster.bootstrap_servers, {f"{topics}.a": 5})
        wait_until(lambda: rows(table) == 52, 60, "all written", lambda: fleet.log("one"))
        reason = "is another table, with no column"  # the check after the start says it, too
        wait_until(lambda: fleet.log("one").count(reason) == 2, 60, "both", lambda: fleet.log("one"))
        assert fleet.stop() == {"one": 0}
        assert fleet.log("one").count(reason) == 2
    assert DeltaTable(str(ops)).version() == before


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    with small_disk(tmp_path, size_kb=256) as found:
        yield found


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the project has logged: a client of an earlier test may still look for its brokers."""
    return [one.getMessage() for one in caplog.records if not one.name.startswith("kafka")]


def test_counts_of_a_full_disk_are_written_when_there_is_room(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Wherever it runs full: one line, no file of a failed attempt stays, and each count is there once."""
    counts, ops = OpsCounts(), disk / "ops"
    writer = OpsWriter(counts, OpsTable(str(ops)), 60, {"agent": "one"})
    written = 0
    while not lines(caplog):
        counts.wrote("home", "/t", {f"{written}-{n}": Written(1, 0, 1) for n in range(50)})
        writer.write()
        written += 50
        assert written < 100_000
    for _ in range(5):
        counts.wrote("home", "/t", {"last": Written(1, 0, 1)})
        writer.write()
    (line,) = lines(caplog)
    assert "No space left on device" in line
    files = {Path(one).name for one in DeltaTable(str(ops)).file_uris()}
    assert {one.name for one in ops.rglob("part-*.parquet")} == files
    subprocess.run(["/bin/mount", "-o", "remount,size=4m", str(disk)], check=True)
    writer.write()
    assert sum(told(ops).values()) == written + 5
    assert told(ops)["last"] == 5


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True], ids=["written", "another table at its address"])
def test_an_agent_of_spark_writes_what_it_did(cluster: Cluster, tmp_path: Path, topics: str, broken: bool) -> None:  # noqa: FBT001
    """By topic, from the log of its table; if the ops log cannot be written, no record is missing nevertheless."""
    table, ops = tmp_path / "table", tmp_path / "ops"
    if broken:
        write_deltalake(str(ops), pa.table({"other": [1]}))
    command = [sys.executable, "-m", "spark_sink", "sink", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--group", topics, "--table", str(table), "--checkpoint", str(tmp_path / "checkpoint")]
    command += ["--subscribe-pattern", f"{topics}[.].*", "--master", "local[1]", "--agent", "one"]
    command += ["--trigger", "available-now", "--ops-log", str(ops), "--ops-log-s", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if broken and done.returncode == 2:
        assert "ops" in done.stderr  # the check before the start names it
        return
    assert done.returncode == 0, done.stderr[-3000:]
    assert rows(table) == sum(COUNTS.values())
    if broken:
        assert done.stderr.count("ops log: ") >= 1, done.stderr[-3000:]
        return
    assert told(ops) == wanted(topics)
    found = DeltaTable(str(ops)).to_pyarrow_table().to_pylist()
    assert {(one["kind"], one["group_id"], one["agent"], one["table_uri"]) for one in found} == {
        ("spark", topics, "one", str(table))
    }
    assert all(one["bytes"] > 0 and not one["errors"] for one in found)
