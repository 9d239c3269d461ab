"""The place of the brokers' data: in memory where there is room, and not longer than the cluster."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from spark_sink.demo.cluster import Broker, memory_data
from spark_sink.demo.cluster.memory_data import place_in_memory, remove_from_memory

BROKERS = [Broker(id=i, rack="az-a", port=9000 + i, controller_port=9100 + i) for i in (1, 2)]
GB = 1_000_000_000


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the file system in memory, with room."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(memory_data, "_MEMORY", folder)
    _set_machine(monkeypatch, folder)
    return folder


def _set_machine(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *, free: int = 4 * GB, available: int = 16 * GB, kind: str = "tmpfs"
) -> None:
    mounted = [SimpleNamespace(mountpoint=str(folder), fstype=kind)]
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    monkeypatch.setattr("psutil.disk_partitions", lambda **_: mounted)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=available))


def test_each_broker_writes_into_memory_and_nothing_stays(tmp_path: Path, memory: Path) -> None:
    """What a broker writes into its folder is in memory until the cluster goes down."""
    place_in_memory(tmp_path, BROKERS)
    for broker in BROKERS:
        (tmp_path / f"data-{broker.id}" / "records").write_text(str(broker.id))
    assert sorted(file.read_text() for file in memory.rglob("records")) == ["1", "2"]
    remove_from_memory(tmp_path, BROKERS)
    assert list(memory.iterdir()) == []


@pytest.mark.parametrize(
    "machine", [{"free": GB}, {"available": 4 * GB}, {"kind": "ext4"}], ids=["small", "little memory", "a disk"]
)
def test_without_room_in_memory_the_data_stays_on_the_disk(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch, machine: dict[str, int]
) -> None:
    """A container has 64 MB there, and a small machine needs its memory for the brokers themselves."""
    _set_machine(monkeypatch, memory, **machine)  # type: ignore[arg-type]
    place_in_memory(tmp_path, BROKERS)
    assert list(memory.iterdir()) == []
    assert [file.name for file in tmp_path.iterdir()] == ["memory"]


def test_a_machine_without_a_file_system_in_memory_uses_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is none on macOS."""
    monkeypatch.setattr(memory_data, "_MEMORY", tmp_path / "none")
    place_in_memory(tmp_path, BROKERS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("memory")
def test_data_on_the_disk_is_left_to_the_directory(tmp_path: Path) -> None:
    """A cluster on the disk has folders where another has links."""
    (tmp_path / "data-1").mkdir()
    remove_from_memory(tmp_path, BROKERS)
    assert (tmp_path / "data-1").is_dir()


def test_the_next_cluster_removes_what_a_killed_process_left(tmp_path: Path, memory: Path) -> None:
    """SIGKILL leaves no time to tidy up; data of a process that lives is not touched."""
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    killed, alive, foreign = (
        memory / f"azimuth-brokers-{name}-x" for name in (int(ended.stdout), os.getpid(), "foreign")
    )
    for folder in (killed, alive, foreign):
        folder.mkdir()
    place_in_memory(tmp_path, BROKERS)
    assert not killed.exists()
    assert alive.exists()
    assert foreign.exists()
