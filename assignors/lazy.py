"""Names of a package that are imported at first use (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
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
