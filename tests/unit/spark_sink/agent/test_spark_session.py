"""The Spark session of an agent."""

import subprocess
import sys

_ASKS = """
import sys
from spark_sink.agent.spark_session import leave_out_testing
leave_out_testing()
import numpy
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter
print(NumpyArrayConverter().can_convert(numpy.zeros(2)), NumpyArrayConverter().can_convert("text"))
print(NumpyScalarConverter().can_convert(numpy.int64(1)), NumpyScalarConverter().can_convert(1))
print(sorted(name for name in ("pandas", "unittest") if name in sys.modules))
"""


def test_calls_into_the_jvm_do_not_load_pandas_nor_support_for_tests() -> None:
    """Both took 0.3 s of each start, between two steps of Spark's."""
    said = subprocess.run([sys.executable, "-c", _ASKS], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["True False", "True False", "[]"]
