"""The process that Python workers are forked from."""

import subprocess
import sys
from pathlib import Path

_FORKED = """
import gc, os, sys
from spark_sink.agent import worker_daemon

worker_daemon.load()
loaded = set(sys.modules)
pid = os.fork()
if pid:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
import pyarrow as pa, pyarrow.compute as pc
from confluent_kafka import Consumer
from deltalake import DeltaTable, write_deltalake

consumer = Consumer({"bootstrap.servers": "localhost:9", "group.id": "g", "log_level": 0})
write_deltalake(sys.argv[1], pa.table({"n": pa.array(range(100_000))}))
assert pc.sum(DeltaTable(sys.argv[1]).to_pyarrow_table()["n"]).as_py() == 4_999_950_000
consumer.close()
assert gc.get_freeze_count()
assert {"deltalake", "pyarrow.parquet", "confluent_kafka", "spark_sink.fetch.range_reader"} <= loaded
"""


def test_what_was_loaded_before_the_fork_works_after_it(tmp_path: Path) -> None:
    """Threads, pools and clients of these libraries must not be begun by loading them: a fork has none of them."""
    command = [sys.executable, "-c", _FORKED, str(tmp_path / "table")]
    assert subprocess.run(command, timeout=120, check=False).returncode == 0
