"""The report of the Spark source's benchmarks, build/bench/spark.json."""

from functools import partial

from tests.benchmarks import report

save = partial(report.save, subject="spark", libraries=("pyspark", "pyarrow", "librdkafka"))
"""Puts a section into the report and prints it."""
