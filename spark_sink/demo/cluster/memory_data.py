"""Keeps the data of brokers in memory, where the machine has room.

Brokers with hundreds of partitions create and map tens of thousands of small files, and on a disk each of them costs
processor time: to produce 270,000 records into 672 replicated partitions took 6 s in memory, 10 to 15 s on a disk.
"""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psutil

from spark_sink.demo.cluster.broker import Broker
from spark_sink.demo.cluster.broker_storage import data_directory

_MEMORY = Path("/dev/shm")  # noqa: S108 - the file system, not a file in it
_PREFIX = "azimuth-brokers-"
_ROOM_BYTES = 2_000_000_000
# Brokers and agents need some of it themselves.
_AVAILABLE_BYTES = 8_000_000_000


def place_in_memory(directory: Path, brokers: Sequence[Broker]) -> None:
    """Link the brokers' folders of data into memory; do nothing where there is no room, or no file system in memory.

    Args:
        directory: of a cluster that ends with this process.
        brokers: all of them, without data yet.
    """
    _remove_abandoned()
    if not _has_room():
        return
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=_MEMORY))
    for broker in brokers:
        (folder / str(broker.id)).mkdir()
        data_directory(directory, broker).symlink_to(folder / str(broker.id))


def remove_from_memory(directory: Path, brokers: Sequence[Broker]) -> None:
    """Remove what `place_in_memory` made; do nothing for data on the disk."""
    for broker in brokers:
        data = data_directory(directory, broker)
        if data.is_symlink():
            shutil.rmtree(data.resolve().parent, ignore_errors=True)


def _has_room() -> bool:
    try:
        free = shutil.disk_usage(_MEMORY).free
    except OSError:
        return False
    in_memory = any(p.mountpoint == str(_MEMORY) and p.fstype == "tmpfs" for p in psutil.disk_partitions(all=True))
    available = psutil.virtual_memory().available
    return in_memory and os.access(_MEMORY, os.W_OK) and free >= _ROOM_BYTES and available >= _AVAILABLE_BYTES


def _remove_abandoned() -> None:
    """Remove the data of processes that were killed: memory, unlike a temporary folder, is missed."""
    for folder in _MEMORY.glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
