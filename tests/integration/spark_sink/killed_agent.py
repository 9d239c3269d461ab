"""`azimuth sink` on topics with bad records, killed with all its processes and started again."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyarrow as pa
from confluent_kafka import Producer
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tests.integration.spark_sink.tied import launch, tree
from tests.waiting import wait_until

Record = tuple[str, int, int]
_POINTS = Path(__file__).with_name("kill_points")
_PATIENCE_S = 180.0
_COLUMNS = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a table is.

    Attributes:
        format: `delta` or `iceberg`.
        table: its address, or its name in the catalog.
        options: of the store or of the catalog.
    """

    format: str
    table: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> str:
        """Lines of an agent's file, with a section at the end."""
        section = "storage" if self.format == "delta" else "catalog"
        lines = [f'table = "{self.table}"', f'table_format = "{self.format}"', f"[{section}]"]
        return "\n".join([*lines, *(f'"{name}" = "{value}"' for name, value in self.options.items())])

    @property
    def address(self) -> str:
        """The table's address, for commands."""
        return self.table if self.format == "delta" else f"iceberg://{self.table}"

    @property
    def storage(self) -> dict[str, str]:
        """Options of the storage, for commands."""
        prefix = "" if self.format == "delta" else "catalog."
        return {f"{prefix}{name}": value for name, value in self.options.items()}

    def rows(self) -> Counter[Record]:
        """Records in table and quarantine, by the format's own reader."""
        found: Counter[Record] = Counter()
        for table in (self.table, f"{self.table}_quarantine"):
            columns = self._read(table).select(_COLUMNS).to_pydict()
            found.update(zip(*(columns[name] for name in _COLUMNS), strict=True))
        return found

    def verify(self) -> "subprocess.CompletedProcess[str]":
        """Run `azimuth verify`."""
        command = [sys.executable, "-m", "spark_sink", "verify", self.address, "--json"]
        command += [word for name, value in self.storage.items() for word in ("--storage", f"{name}={value}")]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)

    def _read(self, table: str) -> pa.Table:
        if self.format == "delta":
            return DeltaTable(table, storage_options=dict(self.options)).to_pyarrow_table(columns=list(_COLUMNS))
        catalog, _, name = table.partition(".")
        return load_catalog(catalog, **self.options).load_table(name).scan(selected_fields=_COLUMNS).to_arrow()


class KilledAgent:
    """An agent that ends when it has caught up.

    Args:
        servers: of the brokers.
        topics: names, each with two partitions.
        root: of checkpoint and log.
        place: of the table.
        landing: `rows` or `direct`.
    """

    def __init__(self, servers: str, topics: Sequence[str], root: Path, place: Place, landing: str) -> None:
        self._servers, self._topics, self._place = servers, topics, place
        self._log, self._mark, checkpoint = root / "log", root / "mark", root / "checkpoint"
        self._config = root / "sink.toml"
        lines = [
            f'bootstrap_servers = "{servers}"\ngroup = "{topics[0]}"\nsubscribe = "{",".join(topics)}"',
            f'checkpoint = "{checkpoint}"\nlanding = "{landing}"\nmaster = "local[2]"\nagent = "one"',
            'trigger = "available-now"\nmax_offsets_per_trigger = 24',
            place.settings,
            '[kafka]\n"session.timeout.ms" = "6000"',
            '[source]\nvalueFormat = "json"\nvalueSchema = \'{"n": "bigint"}\'',
            '[sink]\ncompactEvery = "4"',
        ]
        self._config.write_text("\n".join(lines))
        self._sent = 0

    def produce(self, records: int) -> None:
        """Write records to each partition; each eleventh cannot be decoded."""
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 1})
        for topic in self._topics:
            for number in range(2 * records):
                value = b"{" if number % 11 == 3 else json.dumps({"n": number}).encode()
                producer.produce(topic, value, partition=number % 2)
        assert producer.flush(60) == 0
        self._sent += 2 * records * len(self._topics)

    def kill_at(self, point: str) -> None:
        """Run it until one of its processes is at a point, and kill all."""
        process = self._start(point)
        try:
            wait_until(lambda: self._mark.exists() or process.poll() is not None, _PATIENCE_S, point)
            assert process.poll() is None, f"it ended before {point}: {self._tail()}"
        finally:
            _kill(process)

    def finish(self) -> None:
        """Run it to its end."""
        process = self._start()
        try:
            assert process.wait(_PATIENCE_S) == 0, self._tail()
        finally:
            _kill(process)

    def check(self) -> None:
        """Every record is once in table or quarantine, and `azimuth verify` says so."""
        rows = self._place.rows()
        assert not [one for one, times in rows.items() if times > 1][:5]
        assert len(rows) == self._sent
        verified = self._place.verify()
        assert verified.returncode == 0, verified.stdout + verified.stderr
        said = json.loads(verified.stdout)
        assert (said["duplicates"], said["missing"]) == (0, 0)

    def _start(self, point: str = "") -> "subprocess.Popen[bytes]":
        """Start it, with its JVM and Python processes."""
        environment = dict(os.environ)
        if point:
            path = os.pathsep.join(filter(None, [str(_POINTS), environment.get("PYTHONPATH")]))
            environment |= {"AZIMUTH_KILL_POINT": point, "AZIMUTH_KILL_MARK": str(self._mark), "PYTHONPATH": path}
        self._mark.unlink(missing_ok=True)
        return launch(
            [sys.executable, "-m", "spark_sink", "sink", "--config", str(self._config)], self._log, environment
        )

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Stop all processes of an agent, and then kill them, so that none of them acts on the end of another one."""
    found = tree(process.pid)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for one in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(number)
    process.wait()
