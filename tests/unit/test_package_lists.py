"""The list of modules in the docstring of each package."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    file.parent.relative_to(ROOT)
    for package in ("assignors", "producer", "spark_sink")
    for file in (ROOT / package).rglob("__init__.py")
)
# Names that a line of the list describes: those at its start, and each after a semicolon.
_DESCRIBED = re.compile(r"(?:^\* |; )((?:`\w+`(?:, | and )?)+)(?=:| are )")


def _modules(package: Path) -> set[str]:
    inside = [
        one for one in (ROOT / package).iterdir() if one.suffix in {".py", ".pyx"} or (one / "__init__.py").exists()
    ]
    return {one.stem for one in inside} - {"__init__", "__main__"}


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_a_package_lists_its_modules(package: Path) -> None:
    """A newcomer finds a module here, so none is missing, and none is listed that was renamed or removed."""
    text = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    lines = [" ".join(one.split()) for one in re.findall(r"^\* .*(?:\n  .*)*", text, re.MULTILINE)]
    assert _modules(package) <= {name for line in lines for name in re.findall(r"`(\w+)`", line)}
    described = {name for line in lines for group in _DESCRIBED.findall(line) for name in re.findall(r"\w+", group)}
    assert described - {"and"} <= _modules(package)
