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
