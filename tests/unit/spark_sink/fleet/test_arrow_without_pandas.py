"""Rows of an agent become Arrow without pandas, which other modules can still import."""

import subprocess
import sys

_AGENT = """
import sys
import pyarrow as pa
from spark_sink.fleet.arrow_without_pandas import leave_out_pandas

leave_out_pandas()
headers = [{"key": "k", "value": None}]
columns = {"topic": ["t"], "timestamp": [1_700_000_000_000_001], "value": [b"v"], "headers": [headers]}
rows = pa.Table.from_pydict(columns)
assert rows.to_pydict() == columns and rows.column("value").to_numpy()[0] == b"v"
assert "pandas" not in sys.modules, "Arrow imports pandas"
import pandas
assert pandas.DataFrame(columns).shape == (1, 4)
assert rows.to_pandas().shape == (1, 4)
"""


def test_an_agents_rows_need_no_pandas() -> None:
    """In a process of its own, as pandas stays imported; a module that needs it imports it afterwards."""
    found = subprocess.run([sys.executable, "-c", _AGENT], capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr


def test_imported_pandas_stays() -> None:
    """Arrow then takes values of pandas as such."""
    code = "import pandas\nfrom spark_sink.fleet.arrow_without_pandas import leave_out_pandas\nleave_out_pandas()\n"
    code += "import pyarrow as pa\nassert pa.array([1, pandas.NA], from_pandas=True).null_count == 1"
    subprocess.run([sys.executable, "-c", code], timeout=120, check=True)
