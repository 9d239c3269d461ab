"""The report of the scaling benchmarks: build/bench/scaling.json."""

from functools import partial

from tests.benchmarks import report

save = partial(report.save, subject="scaling", libraries=("numpy",))
"""Puts a section into the report and prints it."""
