"""Plans of random groups, made in Python and in Java, and compared."""

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.data import plan_vectors

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
SHARE = 0.1


def test_random_groups_have_the_same_plan_in_both_languages(tmp_path: Path) -> None:
    """The file of vectors has the same groups for ever; here each run draws its own, 286 of all kinds."""
    maven = shutil.which("mvn")
    if maven is None or not (ROOT / "build" / "broker" / "test-classes").is_dir():
        pytest.skip("`make broker` has not built the broker's assignors")
    seed = 0 if "AZIMUTH_SAME_EXAMPLES" in os.environ else random.randrange(1 << 32)
    file = tmp_path / "vectors.json.gz"
    plan_vectors.write_vectors(plan_vectors.make_vectors(seed, SHARE), file)

    words = ["--offline", "--batch-mode", "--file", str(ROOT / "broker" / "pom.xml"), "surefire:test"]
    properties = ["-Dtest=PlanVectorsTest", f"-Dazimuth.vectors={file}"]
    done = subprocess.run([maven, *words, *properties], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stdout}"
    assert re.search(r"Tests run: 1, Failures: 0, Errors: 0, Skipped: 0", done.stdout), done.stdout
