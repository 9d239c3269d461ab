"""The cost of an import."""

import subprocess
import sys


def test_the_planner_alone_imports_no_client() -> None:
    """A program that only plans or hashes does not wait for kafka-python, and a misspelt name is an AttributeError."""
    code = (
        "import sys, assignors; assignors.plan([], []); assert 'kafka' not in sys.modules; "
        "assert not hasattr(assignors, 'HRWAsignor')"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_package_lists_its_names_before_they_are_imported() -> None:
    """For `help()`, and for the completion of a shell or a notebook; and its modules are its attributes."""
    code = (
        "import sys, assignors, producer, assignors.fleet; "
        "assert not {'kafka', 'confluent_kafka', 'numpy'} & sys.modules.keys(); "
        "assert all(set(one.__all__) <= set(dir(one)) for one in (assignors, producer, assignors.fleet)); "
        "assert '__doc__' in dir(producer); "
        "assert producer.errors.PolicyError is producer.PolicyError and producer.traffic_cost.GB"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
