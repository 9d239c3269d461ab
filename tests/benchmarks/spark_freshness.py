"""The times at which records became readable, from the commits in the logs of tables."""

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Times = npt.NDArray[np.float64]


class Commits:
    """The commits of one table, as they appear.

    Args:
        table: a Delta table, or the folder of Spark's file sink.
    """

    def __init__(self, table: Path) -> None:
        self._table = table
        self._next = 0
        self._produced: list[Times] = []
        self._committed: list[Times] = []

    @property
    def count(self) -> int:
        """Number of commits with rows so far."""
        return len(self._produced)

    def look(self) -> None:
        """Read the new commits."""
        while (found := self._log(self._next)) is not None:
            if times := [_timestamps(self._table / one) for one in _files(found)]:
                self._produced.append(np.concatenate(times))
                # From the time of the log's entry on, readers see the rows.
                self._committed.append(np.full(len(self._produced[-1]), found.stat().st_mtime))
            self._next += 1

    def ages(self, begin: float, end: float) -> Times:
        """Seconds between the record and its commit, of the records produced in `[begin, end)`, shape (N,)."""
        if not self._produced:
            return np.empty(0)
        produced, committed = np.concatenate(self._produced), np.concatenate(self._committed)
        wanted = (produced >= begin) & (produced < end)
        return np.asarray(committed[wanted] - produced[wanted])

    def _log(self, number: int) -> Path | None:
        places = (self._table / "_delta_log" / f"{number:020}.json", self._table / "_spark_metadata" / str(number))
        return next((one for one in places if one.exists()), None)


def _files(log: Path) -> list[str]:
    """Paths of the files that this entry of a log adds, without those of a compaction."""
    entries = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    if log.suffix == ".json":
        return [one["add"]["path"] for one in entries if "add" in one and one["add"]["dataChange"]]
    return [unquote(urlparse(one["path"]).path) for one in entries if one["action"] == "add"]


def _timestamps(path: Path) -> Times:
    """Seconds since 1970 of each record."""
    column = pq.ParquetFile(path).read(columns=["timestamp"]).column("timestamp")
    millis = pc.cast(pc.cast(column, pa.timestamp("ms"), safe=False), pa.int64())
    return np.asarray(millis.to_numpy() / 1000)
