"""Names of a package that are imported at first use (PEP 562), and packages that are not imported at all."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Any


def attributes(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package.

    The package assigns it in the `else` of its `if typing.TYPE_CHECKING`: a type checker that saw it would accept every
    misspelt name as Any.

    Args:
        package: its full name.
        modules: the names that each module inside the package holds.

    Returns:
        A function that loads a name, or one of these modules; it raises AttributeError for any other name.
    """
    homes = {name: module for module, names in modules.items() for name in names}
    parts = {module.partition(".")[0] for module in modules}

    def load(name: str) -> Any:  # noqa: ANN401 -- whatever the name stands for
        if name in parts - homes.keys():
            return importlib.import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    names = vars(sys.modules[package])
    names["__dir__"] = lambda: sorted({*names, *homes})  # for help() and completion
    return load


class _Without(MetaPathFinder):
    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self._package:
            raise ModuleNotFoundError(f"{fullname} is left out here", name=fullname)


@contextmanager
def left_out(package: str) -> Iterator[None]:
    """Let imports of a package fail in this block, for libraries that import it if it is installed and work without it.

    Afterwards other modules can import it. If it is already imported, this has no effect.
    """
    finder = _Without(package)
    if package not in sys.modules:
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
