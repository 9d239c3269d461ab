"""The cluster's processes: every started process is recorded."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from spark_sink.demo.cluster import Access, Broker
from spark_sink.demo.cluster.broker_process import uninterrupted
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


def test_a_folder_with_any_letters_is_the_one_that_brokers_write_to() -> None:
    """Java reads properties as Latin-1: the data would be in a folder that is never removed."""
    folder = Path("/home/jürgen/🛩/c\\d")
    text = server_properties(broker_id=1, rack="az", port=1, controllers=[(1, 2)], data=folder)
    assert "log.dirs=/home/j\\u00fcrgen/\\ud83d\\udee9/c\\\\d\n" in text
    assert text.isascii()


def test_a_storage_that_cannot_be_formatted_leaves_no_process(tmp_path: Path) -> None:
    """The others would write on, into the folder that the next run takes."""
    sleep = shutil.which("sleep")
    java = tmp_path / "java"
    java.write_text(f'#!/bin/sh\ncase "$*" in *broker-1.*) exit 1;; esac\nexec {sleep} 600\n')
    java.chmod(0o755)
    brokers = tuple(Broker(id=n, rack="az", port=20_000 + n, controller_port=21_000 + n) for n in (1, 2))
    before = set(psutil.Process().children())
    with pytest.raises(ClusterError, match="could not be formatted"):
        format_storage(tmp_path, brokers, "any", Access(), java=str(java), jars=tmp_path)
    assert set(psutil.Process().children()) <= before
