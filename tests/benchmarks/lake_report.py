"""The report of the benchmarks of tables: build/bench/lake.json, one section a benchmark."""

from functools import partial

from tests.benchmarks import spark_report

save = partial(spark_report.save, file=spark_report.REPORT.with_name("lake.json"))
"""Puts a section into the report and prints it."""
