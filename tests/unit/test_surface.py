"""The public surface of the three packages."""

import importlib
import inspect
import pkgutil
import re
from types import ModuleType

import pytest

import assignors
import producer
import spark_sink


@pytest.mark.parametrize("package", [assignors, producer, spark_sink], ids=lambda p: p.__name__)
def test_surface_is_listed_sorted_and_documented(package: ModuleType) -> None:
    """A name is public exactly when `__all__` lists it, and then it has a docstring."""
    public = {n for n, v in vars(package).items() if not n.startswith("_") and not isinstance(v, ModuleType)}
    assert package.__all__ == sorted(package.__all__, key=str)
    assert public <= set(package.__all__)
    assert not [n for n in package.__all__ if not inspect.getdoc(getattr(package, n))]


@pytest.mark.parametrize("package", [assignors, producer, spark_sink], ids=lambda p: p.__name__)
def test_every_name_that_a_folder_lists_is_there(package: ModuleType) -> None:
    """Names load at first use, from a module named by a text: a renamed module would fail only at the user's."""
    found = (one.name for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.") if one.ispkg)
    folders = [importlib.import_module(name) for name in found]
    assert not [(one.__name__, n) for one in folders for n in getattr(one, "__all__", ()) if not hasattr(one, n)]


@pytest.mark.parametrize(
    "name", ["assignors.errors", "assignors.consumer.consumer_errors", "producer.errors", "spark_sink.errors"]
)
def test_the_tree_of_errors_has_each_class_below_its_base(name: str) -> None:
    """Readers choose the class to catch from it."""
    module = importlib.import_module(name)
    base: dict[str, str] = {}
    roots, above = set(), [""]
    for line in (module.__doc__ or "").splitlines():
        if root := re.fullmatch(r"(\w+)(?: and \w+)?", line):
            above = [root[1]]
            roots.add(root[1])
        elif found := re.fullmatch(r"([│ ]*)[├└]── (\w+) .*", line):
            above = [*above[: len(found[1]) // 4 + 1], found[2]]
            base[found[2]] = above[-2]
    own = [n for n, kind in vars(module).items() if inspect.isclass(kind) and kind.__module__ == name]
    assert base.keys() | roots >= set(own)
    assert not [n for n in base if base[n] not in {one.__name__ for one in getattr(module, n).__mro__}]
