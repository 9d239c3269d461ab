"""`make audit` distinguishes "nothing is known" from "the database did not answer"."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FLAW = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["3.7"]}
KNOWN = {"name": "idna", "version": "3.6", "vulns": [FLAW]}
SOUND = {"name": "rich", "version": "14.0", "vulns": []}
SKIPPED = {"name": "own", "skip_reason": "not found"}


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    """The script, which is of no package."""
    spec = importlib.util.spec_from_file_location("audit", ROOT / "requirements" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stand_in(tmp_path: Path, canary: str, lock: str) -> tuple[list[str], Path]:
    """A program that answers for one file and for the other as it is told, in place of pip-audit."""
    file = tmp_path / "pip_audit.py"
    file.write_text(f"import sys\nprint({canary!r} if 'canary.txt' in ' '.join(sys.argv) else {lock!r})\n")
    return [sys.executable, str(file)], tmp_path / "dev.txt"


def of(*packages: dict[str, Any]) -> str:
    """An answer."""
    return json.dumps({"dependencies": packages, "fixes": []})


@pytest.mark.parametrize(
    ("canary", "lock", "code", "said"),
    [
        (of(KNOWN), of(SOUND), 0, "1 packages audited, 0 known vulnerabilities"),
        (of(KNOWN), of(SOUND, SKIPPED), 0, "not known to the database: own"),
        (of(KNOWN), of(SOUND, KNOWN), 1, "idna 3.6: PYSEC-1 CVE-1, fixed in 3.7"),
        (of(SKIPPED), of(SOUND), 3, "no vulnerability database answers"),
        (of({**KNOWN, "vulns": []}), of(SOUND), 3, "no vulnerability database answers"),
        ("", of(SOUND), 3, "no vulnerability database answers (no answer): nothing was audited"),
        (of(KNOWN), "", 3, "stopped answering"),
    ],
    ids=["clean", "one not known", "vulnerable", "not known", "no data", "away", "away later"],
)
def test_each_outcome_has_a_code_and_a_sentence(  # noqa: PLR0913, PLR0917 -- a table of cases
    audit: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], canary: str, lock: str, code: int, said: str
) -> None:
    """Behind an index without such data pip-audit says that no vulnerability is known, and ends with 0."""
    program, file = stand_in(tmp_path, canary, lock)
    assert audit.main(program, file) == code
    assert said in capsys.readouterr().out
