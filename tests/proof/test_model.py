"""The model in `docs/proof`: TLC explores it, and finds a violation without each of the code's guards."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path

import pytest

from spark_sink.agent.start.java_command import find_java
from tests.proof.tlc import tlc_jar

pytestmark = pytest.mark.integration

FOLDER = Path(__file__).parents[2] / "docs" / "proof"
INVARIANTS = ("ExactlyOnce", "QuarantineExact", "QuarantineComplete")
GUARDS = (
    "CompactionFence",
    "OneCommit",
    "QuarantineHeld",
    "QuarantineVersion",
    "RefuseHoles",
    "RestoreFence",
    "SameVersion",
    "SkipReplays",
    "TrimRows",
)
CONFIGURATION = """\
SPECIFICATION Spec
CONSTANTS
  Agents = {{a1, a2}}
  Compactors = {{{compactors}}}
  End = 2
  MaxVersion = {versions}
  Guards = {{{guards}}}
SYMMETRY Symmetry
INVARIANTS {invariants}
CHECK_DEADLOCK FALSE
"""


def explore(guards: Collection[str], *, versions: int, compactors: int) -> str:
    """Run TLC on the model with these guards, and return what it prints."""
    settings = CONFIGURATION.format(
        compactors=", ".join(f"c{number + 1}" for number in range(compactors)),
        versions=versions,
        guards=", ".join(f'"{guard}"' for guard in sorted(guards)),
        invariants=" ".join(INVARIANTS),
    )
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(FOLDER / "ExactlyOnce.tla", folder)
        Path(folder, "ExactlyOnce.cfg").write_text(settings)
        # Nice, because tests beside it wait for processes to start.
        java = ["nice", "-n", "15", find_java(), "-XX:+UseParallelGC", "-Xmx2g", "-cp", str(tlc_jar()), "tlc2.TLC"]
        done = subprocess.run(
            [*java, "-workers", "1", "ExactlyOnce.tla"], cwd=folder, capture_output=True, text=True, check=False
        )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("versions", "compactors"),
    [pytest.param(2, 1, marks=pytest.mark.slow), pytest.param(3, 2, marks=pytest.mark.slow)],
    ids=["2 versions", "3 versions, 2 compactors"],
)
def test_with_all_guards_no_history_breaks_an_invariant(versions: int, compactors: int) -> None:
    """Every history within the bounds: crashes, lost answers, replays decoded differently, RESTORE, compaction."""
    said = explore(GUARDS, versions=versions, compactors=compactors)
    assert "Model checking completed. No error has been found." in said, said[-3000:]
    (states,) = re.findall(r"(\d+) states generated, (\d+) distinct states found, 0 states left", said)
    print(f"{states[0]} states, {states[1]} distinct, all explored")


@pytest.mark.parametrize("guard", [pytest.param(one, marks=pytest.mark.slow) for one in GUARDS])
def test_without_a_guard_a_history_breaks_an_invariant(guard: str) -> None:
    """A model that no missing guard can break would prove nothing about the guards."""
    said = explore(set(GUARDS) - {guard}, versions=4, compactors=2)
    found = re.search(r"Error: Invariant (\w+) is violated", said)
    assert found, said[-3000:]
    print(f"without {guard}: {found[1]} is violated after {len(re.findall(r'^State ', said, re.MULTILINE)) - 1} steps")


def test_the_guards_named_here_are_those_of_the_model() -> None:
    """A guard of the model that this list lacks would never be removed in a test."""
    text = (FOLDER / "ExactlyOnce.tla").read_text()
    (named,) = re.findall(r"AllGuards == \{([^}]*)\}", text)
    assert sorted(re.findall(r'"(\w+)"', named)) == sorted(GUARDS)
