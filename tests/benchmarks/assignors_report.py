"""The report of the assignors' benchmarks: build/bench/assignors.json."""

from functools import partial

from tests.benchmarks import report

save = partial(
    report.save, subject="assignors", libraries=("confluent-kafka", "kafka-python", "numpy", "mmh3", "uhashring")
)
"""Puts a section into the report and prints it."""
