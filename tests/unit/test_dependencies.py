"""What the packages import is what the distribution asks for."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
THROUGH = {"py4j": "pyspark", "markupsafe": "jinja2"}
"""What another distribution hands out as a part of its own interface."""
PACKAGES = ("assignors", "producer", "spark_sink")


def imported(package: str) -> Iterator[tuple[str, str]]:
    """File and top-level module of each import, but for the standard library's and our own."""
    own = {*sys.stdlib_module_names, *PACKAGES}
    for file in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            for name in names:
                if (top := name.split(".")[0]) not in own:
                    yield str(file.relative_to(ROOT)), top


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_is_imported_that_is_not_asked_for(package: str) -> None:
    """A module that is there only because a tool for development needs it is missing on every other machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [one for name, found in project["optional-dependencies"].items() if name != "dev" for one in found]
    asked = {canonicalize_name(Requirement(one).name) for one in [*project["dependencies"], *extras]}
    known = packages_distributions()
    strangers = {
        f"{file} imports {name}"
        for file, name in imported(package)
        if not {canonicalize_name(one) for one in known.get(THROUGH.get(name, name), [name])} & asked
    }
    assert not strangers
