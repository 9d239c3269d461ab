"""Ask a vulnerability database about every locked package: `make audit`.

Exit codes: 0 nothing is known, 1 something is, 3 no database answers, so nothing was audited. pip-audit itself calls a
package that its database does not know skipped, and then says that no vulnerability is known: behind an index without
such data that would hold for all of them.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parent / "dev.txt"
# Known to be vulnerable (CVE-2024-3651), for ever: who says nothing of it, says nothing of anything.
CANARY = "idna==3.6"
CLEAN, FOUND, UNANSWERED = 0, 1, 3


def main(program: Sequence[str] = (sys.executable, "-m", "pip_audit"), lock: Path = LOCK) -> int:
    """Audit the lock file; prints one line for each vulnerability, and one sentence at the end."""
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder) / "canary.txt"
        canary.write_text(f"{CANARY}\n", encoding="utf-8")
        known, why = _ask(program, canary)
    if not any(one.get("vulns") for one in known):
        print(f"no vulnerability database answers ({why or f'{CANARY} is not known'}): nothing was audited")
        return UNANSWERED
    packages, why = _ask(program, lock)
    if not packages:
        print(f"the vulnerability database stopped answering ({why}): nothing was audited")
        return UNANSWERED
    found = [(one, flaw) for one in packages for flaw in one.get("vulns", ())]
    for one, flaw in found:
        fixed = ", ".join(flaw["fix_versions"]) or "none yet"
        print(f"{one['name']} {one['version']}: {flaw['id']} {' '.join(flaw['aliases'])}, fixed in {fixed}")
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    print(
        f"{len(packages) - len(skipped)} packages audited, {len(found)} known vulnerabilities"
        + (f"; not known to the database: {', '.join(skipped)}" if skipped else "")
    )
    return FOUND if found else CLEAN


def _ask(program: Sequence[str], requirements: Path) -> tuple[list[dict[str, Any]], str]:
    """What is known of the packages of a file; nothing, and why, where no answer came."""
    wanted = [*program, "--requirement", str(requirements), "--disable-pip", "--no-deps", "--format", "json"]
    done = subprocess.run([*wanted, "--progress-spinner", "off"], capture_output=True, text=True, check=False)
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        lines = done.stderr.strip().splitlines() or ["no answer"]
        return [], lines[-1]
    return packages, ""


if __name__ == "__main__":
    sys.exit(main())
