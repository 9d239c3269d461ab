"""`make test-kafka-python` tests each released version 3.x, and fails only for those that the project allows."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[2]
ANSWER = """kafka-python (3.1.0)
Available versions: 3.1.0, 3.0.12, 3.0.2, 3.0.11rc1, 2.3.3, 4.0.0
  INSTALLED: 3.0.12
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script, which is of no package."""
    spec = importlib.util.spec_from_file_location("kafka_python", ROOT / "requirements" / "kafka_python.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_versions_of_an_index_are_those_of_this_major_version(script: ModuleType) -> None:
    """The newest first: a fault of a new release shows at once."""
    assert list(map(str, script.released(ANSWER))) == ["3.1.0", "3.0.12", "3.0.2"]
    assert script.released("ERROR: no index") == []


def test_a_version_that_is_not_allowed_may_fail(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the bound in pyproject.toml could not leave out what does not work."""
    specifier = script.allowed_versions(ROOT / "pyproject.toml").specifier
    assert not specifier.contains("3.1.0")
    assert not specifier.contains("4.0.0")
    allowed = max(
        one for one in script.released(ANSWER) if one in script.allowed_versions(ROOT / "pyproject.toml").specifier
    )
    monkeypatch.setattr(script, "_installed", lambda *_: True)
    monkeypatch.setattr(script, "_test", lambda folder: (folder.name == str(allowed), "report"))
    assert script.main([str(allowed), "2.3.3"]) == 0
    assert "2.3.3 (not allowed by pyproject.toml): report" in capsys.readouterr().out
    monkeypatch.setattr(script, "_test", lambda _: (False, "report"))
    assert script.main([str(allowed)]) == 1
    monkeypatch.setattr(script, "_index_answer", lambda: "")
    assert script.main([]) == 3


def test_the_tests_it_runs_exist(script: ModuleType) -> None:
    """A folder that moved would leave its tests out, and pytest fails on it only when somebody runs the script."""
    assert all((ROOT / one).is_dir() for one in script.TESTS)
    assert all((ROOT / one).is_file() for one in script.MODULES)
    assert Version("3.0.12") in script.allowed_versions(ROOT / "pyproject.toml").specifier


def test_each_test_of_a_module_named_after_kafka_python_is_run(script: ModuleType) -> None:
    """The partitioner for its producer uses private names, too, and its tests were left out."""
    named = {path for path in (ROOT / "tests" / "unit").rglob("test_kafka_python*.py") if path != Path(__file__)}
    run = {path for one in script.TESTS for path in (ROOT / one).rglob("*.py")} | {ROOT / one for one in script.MODULES}
    assert named
    assert named <= run
