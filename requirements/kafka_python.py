"""Test whatever touches kafka-python with each released version 3.x of it: `make test-kafka-python`.

Each version is installed into a folder of its own, which comes before the environment on Python's path. Exit codes:
0 the tests pass with each version that pyproject.toml allows, 1 they fail with one of them, 3 no index answers.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.version import Version

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = "kafka-python"
MAJOR: Final = 3
TESTS: Final = tuple(f"tests/unit/assignors/{name}" for name in ("clients", "consumer", "member", "protocol"))
MODULES: Final = tuple(
    f"tests/unit/producer/clients/test_kafka_python{name}.py" for name in ("", "_choice", "_watched", "_wire_bytes")
)
PASSED, FAILED, UNANSWERED = 0, 1, 3


def main(wanted: Sequence[str]) -> int:
    """Test the given versions, or all released ones; print one line for each."""
    allowed = allowed_versions(ROOT / "pyproject.toml")
    versions = [Version(one) for one in wanted] or released(_index_answer())
    if not versions:
        print(f"no package index lists versions of {PACKAGE}: nothing was tested")
        return UNANSWERED
    failed = []
    for version in versions:
        if not _installed(folder := ROOT / "build" / PACKAGE / str(version), version):
            print(f"{version}: no package index has it")
            return UNANSWERED
        passed, last = _test(folder)
        inside = allowed.specifier.contains(version)
        failed += [version] if inside and not passed else []
        print(f"{version}{'' if inside else ' (not allowed by pyproject.toml)'}: {last}", flush=True)
    return FAILED if failed else PASSED


def allowed_versions(project: Path) -> Requirement:
    """Return the project's own requirement."""
    needs = tomllib.loads(project.read_text())["project"]["dependencies"]
    return next(one for one in map(Requirement, needs) if one.name == PACKAGE)


def released(answer: str) -> list[Version]:
    """Return the versions 3.x of pip's list, the newest first."""
    listed: Iterable[str] = re.findall(r"^Available versions: (.*)$", answer, re.MULTILINE)
    found = {Version(one.strip()) for line in listed for one in line.split(",")}
    return sorted((one for one in found if one.major == MAJOR and not one.is_prerelease), reverse=True)


def _index_answer() -> str:
    asked = [sys.executable, "-m", "pip", "index", "versions", PACKAGE]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout


def _installed(folder: Path, version: Version) -> bool:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    return folder.exists() or not subprocess.run([*pip, f"{PACKAGE}=={version}"], check=False).returncode


def _test(folder: Path) -> tuple[bool, str]:
    """Return whether the tests pass, and the last line of their report."""
    path = os.pathsep.join([str(folder), str(ROOT)])
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *TESTS, *MODULES]
    done = subprocess.run(
        run, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    folder.with_name(f"{folder.name}.txt").write_text(done.stdout + done.stderr)
    return done.returncode == 0, (done.stdout.strip().splitlines() or ["no test ran"])[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
