"""Jars for tests, from Maven Central."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest


class Jar(NamedTuple):
    """A jar, or another kind of file, by its coordinates; one with a classifier comes without what it needs."""

    group: str
    name: str
    version: str
    classifier: str = ""
    kind: str = "jar"
    alone: bool = False


def fetch_jars(folder: Path, wanted: Iterable[Jar], what: str) -> Path:
    """Fetch jars with what they need; Maven keeps them in its repository for the next run.

    Skips the test if Maven is missing or cannot fetch them.

    Args:
        folder: where the jars are afterwards.
        wanted: the jars.
        what: their name in the reason of a skipped test.
    """
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("Maven is missing")
    folder.mkdir()
    pom = folder.parent / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>"
        f"<dependencies>{''.join(map(_dependency, wanted))}</dependencies></project>"
    )
    copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    done = subprocess.run(
        [maven, "-B", "-q", "-f", str(pom), *copy], capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode:
        pytest.skip(f"Maven cannot fetch {what}")
    return folder


def _dependency(jar: Jar) -> str:
    kind = f"<type>{jar.kind}</type>" + (f"<classifier>{jar.classifier}</classifier>" if jar.classifier else "")
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    return (
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.name}</artifactId><version>{jar.version}</version>"
        f"{kind}{alone if jar.classifier or jar.alone else ''}</dependency>"
    )
