"""A command's process ends with the command's exit code, whatever threads its libraries have left."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.formats import JsonDecoder, decode_batch
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions

pytestmark = pytest.mark.long

PROGRAM = """
import atexit, sys, threading, time

class Finalized:
    def __del__(self): print("torn down", flush=True)

kept = Finalized()
sys.argv = ["azimuth", *{arguments}]
from spark_sink.cli import main
threading.Thread(target=lambda: (time.sleep(2), print("joined", flush=True))).start()
atexit.register(print, "registered before")
original = __import__("spark_sink.cli._app", fromlist=["main"]).main
def late(arguments):
    atexit.register(lambda: print("exit function"))
    original(arguments)
sys.modules["spark_sink.cli._app"].main = late
main()
"""


def run(arguments: Sequence[str], program: str | None = None) -> subprocess.CompletedProcess[str]:
    """One command as a process."""
    code = ["-c", program] if program else ["-m", "spark_sink", *arguments]
    return subprocess.run([sys.executable, *code], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [(["--version"], 0, "azimuth "), (["lag", "--no-such-option"], 2, "No such option"), ([], 2, "Usage")],
    ids=["success", "usage error", "no command"],
)
def test_the_interpreter_is_not_torn_down(arguments: list[str], code: int, says: str) -> None:
    """Threads are joined, exit functions of the command are called, streams are flushed; nothing comes after that."""
    done = run([], PROGRAM.format(arguments=arguments))
    assert done.returncode == code, done.stderr
    assert says in done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "joined" in lines
    assert lines[-1] == "exit function"
    assert "torn down" not in lines


def test_a_defect_is_still_reported_by_the_interpreter() -> None:
    """Its traceback and exit code 1 are Python's own."""
    broken = "import sys\nfrom spark_sink.cli import _app, main\n_app.main = lambda _: 1 / 0\nsys.argv = ['azimuth']\n"
    broken += "main()\n"
    done = run([], broken)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two rows and two records in quarantine."""
    path = tmp_path_factory.mktemp("ended") / "table"
    values = pa.array([b'{"x":1}', b"bad", b'{"x":2}', b"worse"], pa.binary())
    times = pa.array([1_700_000_000_000_000] * 4, pa.timestamp("us", "UTC"))
    places = [pa.array(["a"] * 4), pa.array([0] * 4, pa.int32()), pa.array(range(4), pa.int64())]
    raw = pa.RecordBatch.from_arrays(
        [*places, times, pa.nulls(4, pa.binary()), values], schema=arrow_schema(headers=False)
    )
    rows = decode_batch(raw, JsonDecoder(pa.schema([("x", pa.int64())])))
    options = SinkOptions.parse({"path": str(path), "kafka.group.id": "g", "checkpointLocation": f"{path}-checkpoint"})
    sorting = Sorting(options, rows.schema, "run")
    sorting.write(rows)
    Tables(options).commit(Offset.of([Range("a", 0, 0, 4, 1)]), sorting.close(), rows.schema, 0)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["quarantine", "list"], "2 records wait in quarantine"),
        (["quarantine", "show"], "offset 1: NotJson"),
        (["verify"], "2 rows"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_that_opens_tables_ends_cleanly_thirty_times(command: list[str], says: str, table: Path) -> None:
    """It ended with SIGABRT in one of seven runs: a thread of Arrow released a Python object too late."""
    for _ in range(30):
        done = run([*command, str(table)])
        assert (done.returncode, done.stderr) == (0, "")
        assert says in done.stdout
