"""The names that tests replace with `monkeypatch`.

Neither an import nor the type checker sees such a name, so a test that runs seldom would fail long after its module was
parted.
"""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
# The other tests run each time, so they find it themselves.
SELDOM = sorted(
    file
    for file in TESTS.rglob("*.py")
    if "unit" not in file.relative_to(TESTS).parts or "mark.slow" in file.read_text()
)
REPLACING = {"monkeypatch.setattr", "monkeypatch.delattr"}


def _imported(tree: ast.Module) -> dict[str, str]:
    """Dotted name behind each name that a module imports."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Import):
            names |= {one.asname or one.name.split(".")[0]: one.name for one in node.names}
    return names


def _replaced(file: Path) -> Iterator[str]:
    """Dotted names that a file hands to `setattr` or `delattr` of `monkeypatch`, where the file itself says which."""
    tree = ast.parse(file.read_text())
    imported = _imported(tree)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or ast.unparse(call.func) not in REPLACING:
            continue
        match call.args:
            case [ast.Constant(value=str(name)), *_]:
                yield name
            case [ast.Name(id=owner), ast.Constant(value=str(name)), *_] if owner in imported:
                yield f"{imported[owner]}.{name}"


def test_each_replaced_name_exists() -> None:
    """A module that was parted takes its names along, and `monkeypatch` says so only when the test runs."""
    names = {(name, file.relative_to(TESTS).as_posix()) for file in SELDOM for name in _replaced(file)}
    assert len(names) > 10  # an empty set would make the test pass for nothing
    gone = sorted(f"{file} replaces {name}" for name, file in names if not _exists(name))
    assert not gone, "these do not exist"


def _exists(name: str) -> bool:
    owner, _, attribute = name.rpartition(".")
    try:
        found = importlib.import_module(owner)
    except ImportError:
        found = pkgutil.resolve_name(owner)
    return hasattr(found, attribute)
