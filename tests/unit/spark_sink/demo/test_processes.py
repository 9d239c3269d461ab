"""The cluster's processes: every started process is recorded."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from spark_sink.demo.cluster import Access, Broker
from spark_sink.demo.cluster.broker_process import ProcessIdentity, uninterrupted
from spark_sink.demo.cluster.broker_settings import server_properties
from spark_sink.demo.cluster.broker_storage import format_storage
from spark_sink.errors import ClusterError


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as in a terminal: a run in the background, from a shell without job control, has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_waits_until_a_new_process_is_known() -> None:
    """Between the start of a process and the note of its id, Ctrl-C would leave it behind."""
    steps = []

    def start() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            steps.append("known")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert steps == ["known"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="only Linux can tie a process to another")
def test_a_tied_process_ends_with_the_one_that_started_it() -> None:
    """A killed demo cannot end its agents itself."""
    # The child says its own id: only then is it surely tied.
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    script = "import subprocess, sys; from spark_sink.demo.cluster.broker_process import tie\n"
    script += f"subprocess.run(tie([sys.executable, '-c', {child!r}]))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        tied = psutil.Process(int(owner.stdout.readline()))
        owner.kill()
    assert psutil.wait_procs([tied], timeout=10)[1] == []


@pytest.mark.parametrize("end", [ProcessIdentity.kill, lambda identity: identity.send(signal.SIGKILL)])
def test_a_broker_of_another_user_is_not_taken_for_ended(
    end: Callable[[ProcessIdentity], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cluster kill` said nothing and exited with 0, `cluster down` ended with a traceback."""

    def refused(process: psutil.Process, _signal: int) -> None:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "send_signal", refused)
    broker = ProcessIdentity(pid=os.getpid(), created=psutil.Process().create_time())
    with pytest.raises(ClusterError, match="another user"):
        end(broker)


def test_a_folder_with_any_letters_is_the_one_that_brokers_write_to() -> None:
    """Java reads properties as Latin-1: the data would be in a folder that is never removed."""
    folder = Path("/home/jürgen/🛩/c\\d")
    text = server_properties(broker_id=1, rack="az", port=1, controllers=[(1, 2)], data=folder)
    assert "log.dirs=/home/j\\u00fcrgen/\\ud83d\\udee9/c\\\\d\n" in text
    assert text.isascii()


BROKERS = tuple(Broker(id=n, rack="az", port=20_000 + n, controller_port=21_000 + n) for n in (1, 2, 3))


def _java(folder: Path, does: str) -> list[str]:
    """A command that stands in for Kafka's tool."""
    java = folder / "java"
    java.write_text(f"#!/bin/sh\n{does}\n")
    java.chmod(0o755)
    return [str(java)]


def test_a_storage_that_cannot_be_formatted_is_an_error_with_the_reason(tmp_path: Path) -> None:
    """A broker that starts on it would fail with a less clear one."""
    java = _java(tmp_path, "echo no such version; exit 1")
    with pytest.raises(ClusterError, match="could not be formatted:\nno such version"):
        format_storage(tmp_path, BROKERS, "any", Access(), java, tmp_path)


def test_an_interrupted_format_leaves_no_process(tmp_path: Path) -> None:
    """It would write on, into the folder that the next run takes.

    In a process of its own: among many threads, another one than the waiting one may take the signal.
    """
    java = _java(tmp_path, "echo $$ > id; kill -INT $PPID\nexec sleep 600")
    script = f"""
import signal
from pathlib import Path
from spark_sink.demo.cluster import Access, Broker
from spark_sink.demo.cluster.broker_storage import format_storage

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a job of a shell without job control
try:
    format_storage(Path(), [Broker(id=1, rack="az", port=1, controller_port=2)], "any", Access(), {java!r}, Path())
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60
    )
    assert ended.stdout == "interrupted\n"
    assert not psutil.pid_exists(int((tmp_path / "id").read_text()))


def test_each_broker_has_its_own_ids_and_the_clusters_records(tmp_path: Path) -> None:
    """Kafka refuses a storage of another node, of another cluster, or with a directory's id that it knows already."""
    data = tmp_path / "data-1"
    written = "#\\nnode.id=1\\ndirectory.id=first\\nversion=1\\ncluster.id=any\\n"
    java = _java(tmp_path, f"mkdir {data}; printf '{written}' > {data}/meta.properties; echo $* > {data}/bootstrap")
    format_storage(tmp_path, BROKERS, "any", Access(scram={"ann": "secret"}), java, tmp_path)
    found = []
    for broker in BROKERS:
        folder = tmp_path / f"data-{broker.id}"
        assert "name=ann,password=secret" in (folder / "bootstrap").read_text()
        lines = (folder / "meta.properties").read_text().splitlines()[1:]
        found.append(dict(line.split("=") for line in lines))
    assert [one["node.id"] for one in found] == ["1", "2", "3"]
    assert len({one["directory.id"] for one in found}) == 3
    assert {(one["version"], one["cluster.id"]) for one in found} == {("1", "any")}
