"""The report of the fleet's benchmarks: build/bench/fleet.json."""

from functools import partial

from tests.benchmarks import report

save = partial(
    report.save,
    subject="fleet",
    libraries=("numpy", "mmh3", "uhashring", "kafka-python", "confluent-kafka", "redis", "deltalake"),
)
"""Puts a section into the report and prints it."""
