"""Time of `--check` for each fault of its table, as processes of their own: at most five seconds each."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from spark_sink.agent.agent_name_lock import only_agent_of_its_name
from tests.unit.spark_sink.checks.fault_places import Places, opened
from tests.unit.spark_sink.checks.test_faults import FAULTS, settings_of, sink
from tests.unit.spark_sink.checks.test_faults_of_claims import FAULTS_OF_CLAIMS

pytestmark = pytest.mark.benchmark

LONGEST_S = 5.0
"""The bar, on a machine without other work."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """The servers and folders of the table."""
    with opened(tmp_path_factory.mktemp("check")) as found:
        yield found


def check(places: Places, arguments: list[str]) -> tuple[str, float]:
    """Run a check that finds a fault, and return what it says and the seconds that it takes."""
    names = places.names
    command = [sys.executable, "-m", "spark_sink", *(one.format(**names) for one in arguments)]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    seconds = time.monotonic() - began
    said = " ".join((done.stdout + done.stderr).replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())
    assert done.returncode == 2, said
    return said, seconds


@pytest.mark.parametrize(("arguments", "place", "way"), [*FAULTS, *FAULTS_OF_CLAIMS])
def test_a_fault_is_found_in_five_seconds(places: Places, arguments: list[str], place: str, way: str) -> None:
    """With the start of the interpreter: a person waits for it.

    The brokers of the table do not describe groups, so a check with a question about one takes its longest time.
    """
    said, seconds = check(places, arguments)
    sys.stdout.write(f"{seconds:.2f} s: {' '.join(arguments)}\n")
    names = places.names
    assert place.format(**names) in said
    assert way.format(**names) in said
    assert seconds <= LONGEST_S


def test_a_name_that_is_taken_is_found_in_five_seconds(places: Places) -> None:
    """By the lock of the other agent on this machine."""
    with only_agent_of_its_name(settings_of(places)):
        said, seconds = check(places, sink())
    sys.stdout.write(f"{seconds:.2f} s: a name that is taken\n")
    assert "give each agent a name of its own (--agent)" in said
    assert seconds <= LONGEST_S
