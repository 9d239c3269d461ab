"""What the tasks of a query received, by topic and broker, in files: Spark's Python API takes no metrics from a source.

Each process of Spark's that reads writes one file with its sums. The folder is one that all of them and the reader of
the figures see: with a local master any folder, on a cluster a shared one.
"""

import contextlib
import json
import os
import socket
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from assignors.clients import Received
from spark_sink.fetch.librdkafka_symbols import Addresses, library
from spark_sink.ranges.batch_offset import TopicPartition

Counts = dict[tuple[str, int], Received]
Run = tuple[TopicPartition, int, int]

_SUFFIX: Final = ".received.json"


def count_received(counts: Counts, records: npt.NDArray[np.void], addresses: Addresses, runs: Iterable[Run]) -> None:
    """Add records by topic and by the broker that sent them: the leader, or a closer replica (KIP-392).

    Args:
        counts: changed in place.
        records: copied structs, shape (N,).
        addresses: of the same records, which librdkafka still holds, shape (N,).
        runs: consecutive records of one partition each, with the first and the last index; they cover all records.
    """
    sizes = records["value_bytes"] + records["key_bytes"]
    sender = library(quick=True).rd_kafka_message_broker_id
    for key, first, last in runs:
        cell = key.topic, int(sender(int(addresses[first])))
        fresh = Received(last - first + 1, int(sizes[first : last + 1].sum()))
        counts[cell] = counts.get(cell, Received()).plus(fresh)


def note_received(folder: str, counts: Counts) -> None:
    """Add what a task received to the file of this process."""
    _file_of_this_process(folder, os.getpid()).add(counts)


@cache
def _file_of_this_process(folder: str, _process: int) -> "ReceivedFile":
    return ReceivedFile(Path(folder))


class ReceivedFile:
    """The sums of this process; a file of the folder, replaced as a whole.

    Args:
        folder: exists; a process that cannot write there continues to read: figures must not end a query.
    """

    def __init__(self, folder: Path) -> None:
        # A process may get the number of one that ended: the file has a name that is used once.
        self._path = folder / f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}{_SUFFIX}"
        self._counts: Counts = {}

    def add(self, fresh: Counts) -> None:
        """Add what a task received, and write the sums."""
        for cell, count in fresh.items():
            self._counts[cell] = self._counts.get(cell, Received()).plus(count)
        whole = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            whole.write_text(json.dumps([[*cell, *count] for cell, count in self._counts.items()]), encoding="utf-8")
            whole.replace(self._path)


def read_received(folder: Path) -> Counts:
    """Add up the files of a folder; those of processes that ended count, too.

    Returns:
        Records and bytes of keys and values, by topic and id of the broker that sent them.
    """
    found: Counts = {}
    for rows in _files(folder):
        for topic, broker, records, size in rows:
            found[topic, broker] = found.get((topic, broker), Received()).plus(Received(records, size))
    return found


def _files(folder: Path) -> Iterator[list[tuple[str, int, int, int]]]:
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        # A file that is removed meanwhile, or that a full disk cut off.
        with contextlib.suppress(OSError, ValueError):
            yield json.loads(path.read_text(encoding="utf-8"))
