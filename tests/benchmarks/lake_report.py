"""The report of the benchmarks of tables: build/bench/lake.json."""

from functools import partial

from tests.benchmarks import report

save = partial(report.save, subject="lake", libraries=("pyspark", "pyarrow", "librdkafka"))
"""Puts a section into the report and prints it."""
