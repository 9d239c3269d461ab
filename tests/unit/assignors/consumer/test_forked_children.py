"""A child that a program forks while its consumer runs, and that ends in each of the ways in which a process ends."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS

PROGRAM = Path(__file__).with_name("forking_process.py")
WITH_CALLBACK = Path(__file__).with_name("callback_forking_process.py")
ROOT = Path(__file__).parents[4]


def forked(cluster: MockCluster, *arguments: str, program: Path = PROGRAM) -> dict[str, Any]:
    """Run the program, and return what its parent says."""
    command = [sys.executable, str(program), cluster.bootstrap_servers, *arguments]
    env = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, check=False, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("end", ["sys.exit", "os._exit", "off the end"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_child_ends_and_its_parent_reads_on(cluster: MockCluster, protocol: str, end: str) -> None:
    """It neither delivers records, nor leaves the group for its parent, nor hangs. The bare client's child aborts."""
    ours = forked(cluster, "ours", protocol, end)
    bare = forked(cluster, "bare", protocol, end)
    assert ours == {"child": "code 0", "records": 3 * RECORDS, "of": 3 * RECORDS, "events": ["assigned"]}
    assert ours | {"child": ""} == bare | {"child": ""}


ENDS = {"returns": ("ClosedConsumerError", 1), "exits": ("SystemExit", 0), "raises": ("LookupError", 1)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "where", "way"),
    [
        *(("classic", where, way) for where in ("on_assign", "on_revoke") for way in ENDS),
        ("classic", "on_commit", "returns"),
        ("classic", "stats_cb", "exits"),
        ("consumer", "on_assign", "returns"),
        ("consumer", "on_revoke", "exits"),
    ],
)
def test_a_child_that_a_callback_forks_ends_the_call(cluster: MockCluster, protocol: str, where: str, way: str) -> None:
    """The rest of the call would wait for threads that do not run in the child. The bare client's child waits."""
    call, code = ENDS[way]
    assert forked(cluster, protocol, where, way, program=WITH_CALLBACK) == {
        "call": call,
        "child": f"code {code}",
        "records": 3 * RECORDS,
        "events": ["assigned", "revoked"],
    }
